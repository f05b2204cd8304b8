using System.Buffers;
using System.Globalization;
using System.IO.Compression;
using System.Net;
using System.Net.Http.Headers;
using System.Net.Security;
using System.Text;
using KernelTls.AspNetCore.Tls;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.FileProviders;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests files as response bodies: what the client receives, in every mode as from the stock server.</summary>
public class FileTests
{
    private const int Size = (3 * ResponseFiles.PartSize) + 12_345;

    public static TheoryData<TlsMode> All => [.. Modes.Every];

    public static TheoryData<TlsMode, string> BothProtocols => Modes.With("1.1", "2.0");

    [Theory]
    [MemberData(nameof(BothProtocols))]
    public async Task Files_of_every_size_arrive(TlsMode mode, string version)
    {
        using PatternFile file = new(Size);
        await using Server server = await StartAsync(mode, context => SendAsync(context, file.FullName));
        using HttpClient client = Server.CreateClient(version);

        foreach (int size in new[]
        {
            0, 1, ResponseFiles.SmallFile, ResponseFiles.SmallFile + 1, 65_536, ResponseFiles.PartSize,
            ResponseFiles.PartSize + 1, Size,
        })
        {
            byte[] body = await client.GetByteArrayAsync(new Uri(server.Https, $"/?count={size}")).InTime($"{size} bytes");
            Assert.Equal(size, body.Length);
            Pattern.AssertAt(0, body);
        }

        Assert.Single(server.Events.Entries, e => e.Id.Name == "ConnectionStart");
        AssertNoneWasCopied(server);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Parts_from_anywhere_arrive(TlsMode mode)
    {
        const long Far = 5L << 30;
        using PatternFile file = new(Size, Far);
        await using Server server = await StartAsync(mode, context => SendAsync(context, file.FullName));
        using HttpClient client = Server.CreateClient();

        foreach ((long offset, int count) in new[] { (Far, 100_000), (Far + 4_097, 2_000_001), (Far + Size - 50_000, 50_000), (Far + 1, 10) })
        {
            byte[] body = await client.GetByteArrayAsync(new Uri(server.Https, $"/?offset={offset}&count={count}")).InTime();
            Assert.Equal(count, body.Length);
            Pattern.AssertAt(offset, body);
        }

        byte[] rest = await client.GetByteArrayAsync(new Uri(server.Https, $"/?offset={Far + 5}")).InTime();
        Assert.Equal(Size - 5, rest.Length);
        Pattern.AssertAt(Far + 5, rest);
    }

    /// <summary>Tests UseStaticFiles, including its responses without a body.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public Task Static_files_are_served(TlsMode mode) => SideBySide.RunAsync(mode, async m =>
    {
        using PatternFile file = new(200_000);
        File.SetLastWriteTimeUtc(file.FullName, new DateTime(2025, 1, 1));
        await using Server server = await Server.StartAsync(m, application: application => application.UseStaticFiles(new StaticFileOptions
        {
            FileProvider = new PhysicalFileProvider(Path.GetDirectoryName(file.FullName)!),
            ServeUnknownFileTypes = true,
        }));
        using HttpClient client = Server.CreateClient();
        List<string> answers = [];
        foreach ((HttpMethod method, string header, string value) in new[]
        {
            (HttpMethod.Get, "X", "x"),
            (HttpMethod.Get, "Range", "bytes=100-149999"),
            (HttpMethod.Get, "Range", "bytes=-10"),
            (HttpMethod.Get, "Range", "bytes=300000-"),
            (HttpMethod.Get, "If-Modified-Since", "Wed, 01 Jan 2025 00:00:00 GMT"),
            (HttpMethod.Get, "If-Unmodified-Since", "Mon, 01 Jan 2024 00:00:00 GMT"),
            (HttpMethod.Head, "X", "x"),
            (HttpMethod.Head, "Range", "bytes=100-149999"),
            (HttpMethod.Get, "X", "x"),
        })
        {
            using HttpRequestMessage request = new(method, new Uri(server.Https, "/file"));
            request.Headers.TryAddWithoutValidation(header, value);
            using HttpResponseMessage response = await client.SendAsync(request).InTime();
            byte[] body = await response.Content.ReadAsByteArrayAsync().InTime();
            if (body.Length > 0)
            {
                Pattern.AssertAt(response.Content.Headers.ContentRange?.From ?? 0, body);
            }

            answers.Add($"{method} {header}: {value} -> {response.StatusCode} {body.Length} {response.Content.Headers}");
        }

        Assert.Single(server.Events.Entries, e => e.Id.Name == "ConnectionStart");
        AssertNoneWasCopied(server);
        return answers.ToArray();
    });

    [Theory]
    [MemberData(nameof(All))]
    public async Task Files_and_memory_keep_their_order(TlsMode mode)
    {
        using PatternFile file = new(Size);
        await using Server server = await StartAsync(mode, async context =>
        {
            HttpResponse response = context.Response;
            response.ContentLength = Size;

            // Written before the head is sent, and not flushed.
            Pattern.Take(700).CopyTo(response.BodyWriter.GetMemory(700));
            response.BodyWriter.Advance(700);
            await response.SendFileAsync(file.FullName, 700, 100_000);
            await response.Body.WriteAsync(Pattern.Take(5_000, 100_700));
            response.BodyWriter.Write(Pattern.Take(9_000, 105_700));
            await response.SendFileAsync(file.FullName, 114_700, 300);
            await response.SendFileAsync(file.FullName, 115_000, 2_000_000);
            await response.SendFileAsync(file.FullName, 2_115_000, 1_000_000);
            await response.BodyWriter.WriteAsync(Pattern.Take(Size - 3_115_000, 3_115_000));
        });
        using HttpClient client = Server.CreateClient();

        for (int i = 0; i < 3; i++)
        {
            byte[] body = await client.GetByteArrayAsync(server.Https).InTime();
            Assert.Equal(Size, body.Length);
            Pattern.AssertAt(0, body);
        }

        Assert.Single(server.Events.Entries, e => e.Id.Name == "ConnectionStart");
        AssertNoneWasCopied(server);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Without_a_length_the_response_is_chunked(TlsMode mode)
    {
        using PatternFile file = new(Size);
        await using Server server = await StartAsync(mode, async context =>
        {
            if (context.Request.Query.ContainsKey("late"))
            {
                // The length is removed when the head is created.
                context.Response.ContentLength = Size;
                context.Response.OnStarting(() =>
                {
                    context.Response.ContentLength = null;
                    return Task.CompletedTask;
                });
            }

            await context.Response.SendFileAsync(file.FullName);
        });
        using HttpClient client = Server.CreateClient();

        foreach (string query in new[] { "", "?late" })
        {
            using HttpResponseMessage response = await client.GetAsync(new Uri(server.Https, query)).InTime();
            byte[] body = await response.Content.ReadAsByteArrayAsync().InTime();

            Assert.True(response.Headers.TransferEncodingChunked);
            Assert.Equal(Size, body.Length);
            Pattern.AssertAt(0, body);
        }

        Assert.Single(server.Events.Entries, e => e.Id.Name == "ConnectionStart");
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Pipelined_requests_for_files_are_answered_in_order(TlsMode mode)
    {
        const int Requests = 10;
        using PatternFile file = new(Size);
        await using Server server = await StartAsync(mode, context => SendAsync(context, file.FullName));
        await using SslStream client = await server.ConnectAsync();
        StringBuilder requests = new();
        for (int i = 1; i <= Requests; i++)
        {
            requests.Append(CultureInfo.InvariantCulture, $"GET /?offset={i}&count={i * 20_000} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        }

        await client.WriteAsync(Encoding.ASCII.GetBytes(requests.ToString())).InTime();

        for (int i = 1; i <= Requests; i++)
        {
            Assert.Contains($"\r\nContent-Length: {i * 20_000}\r\n", await Raw.ReadHeadAsync(client), StringComparison.Ordinal);
            byte[] body = new byte[i * 20_000];
            await client.ReadExactlyAsync(body).InTime();
            Pattern.AssertAt(i, body);
        }

        AssertNoneWasCopied(server);
    }

    /// <summary>Kestrel then keeps the written data in its own buffers.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task While_a_flush_is_pending_the_file_is_copied(TlsMode mode)
    {
        const int Before = 20_000_000;
        using PatternFile file = new(Before + Size);
        TaskCompletionSource<Task> flushing = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Server server = await StartAsync(mode, async context =>
        {
            context.Response.ContentLength = Before + Size;
            await context.Response.StartAsync();
            Task flush = context.Response.BodyWriter.WriteAsync(Pattern.Take(Before)).AsTask();
            flushing.SetResult(flush);
            await context.Response.SendFileAsync(file.FullName, Before, Size);
            await flush;
        });
        await using SslStream client = await server.ConnectAsync();
        await Raw.SendRequestAsync(client, "/");
        await Raw.ReadHeadAsync(client);
        await (await flushing.Task.InTime("the flush to begin")).StaysPending();

        await Pattern.ReceiveAsync(client, Before + Size).InTime();

        Assert.Equal(
            Modes.OnOpenSsl.Contains(mode), server.Events.Entries.Any(e => e.Id.Name == nameof(LogMessages.FileIsCopied)));
    }

    /// <summary>A feature that replaces the body takes precedence.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Middleware_that_replaces_the_body_wins(TlsMode mode)
    {
        using PatternFile file = new(Size);
        await using Server server = await Server.StartAsync(
            mode,
            builder: builder => builder.Services.AddResponseCompression(options =>
            {
                options.EnableForHttps = true;
                options.MimeTypes = ["text/plain"];
            }),
            application: application =>
            {
                application.UseResponseCompression();
                application.Use(async (context, next) =>
                {
                    Stream body = context.Response.Body;
                    using MemoryStream buffer = new();
                    context.Response.Body = buffer;
                    await next();
                    context.Response.Body = body;
                    context.Response.ContentLength = buffer.Length;
                    await body.WriteAsync(buffer.ToArray());
                });
                application.Run(context =>
                {
                    context.Response.ContentType = context.Request.Query.ContainsKey("plain") ? "text/plain" : "image/x";
                    return SendAsync(context, file.FullName);
                });
            });
        using HttpClient client = Server.CreateClient();
        client.DefaultRequestHeaders.AcceptEncoding.Add(new StringWithQualityHeaderValue("gzip"));

        Pattern.AssertAt(0, await client.GetByteArrayAsync(server.Https).InTime());
        using GZipStream body = new(await client.GetStreamAsync(new Uri(server.Https, "?plain")).InTime(), CompressionMode.Decompress);
        await Pattern.ReceiveAsync(body, Size).InTime();
        Assert.Equal(0, await body.ReadAsync(new byte[1]).InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public Task Callbacks_and_state_are_as_ever(TlsMode mode) => SideBySide.RunAsync(mode, async m =>
    {
        using PatternFile file = new(Size);
        List<string> steps = [];
        TaskCompletionSource completed = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Server server = await StartAsync(m, async context =>
        {
            IHttpResponseBodyFeature feature = context.Features.GetRequiredFeature<IHttpResponseBodyFeature>();
            feature.DisableBuffering();
            context.Response.ContentLength = Size;
            context.Response.OnStarting(() =>
            {
                steps.Add($"starting {context.Response.HasStarted}");
                context.Response.Headers["X-Starting"] = "yes";
                return Task.CompletedTask;
            });
            context.Response.OnCompleted(() =>
            {
                steps.Add($"completed {context.Response.HasStarted}");
                completed.SetResult();
                return Task.CompletedTask;
            });
            steps.Add($"before {context.Response.HasStarted}");
            await context.Response.SendFileAsync(file.FullName);
            steps.Add($"after {context.Response.HasStarted} {feature.Writer.UnflushedBytes}");
            await feature.CompleteAsync();
            steps.Add($"end {Record.Exception(() => feature.Writer.GetMemory())?.GetType()}");
        });
        using HttpClient client = Server.CreateClient();

        using HttpResponseMessage response = await client.GetAsync(server.Https).InTime();
        Pattern.AssertAt(0, await response.Content.ReadAsByteArrayAsync().InTime());
        await completed.Task.InTime("OnCompleted");

        Assert.Equal("yes", response.Headers.GetValues("X-Starting").Single());
        AssertNoneWasCopied(server);
        return steps.ToArray();
    });

    [Theory]
    [MemberData(nameof(All))]
    public Task Old_clients_get_files(TlsMode mode) => SideBySide.RunAsync(mode, async m =>
    {
        using PatternFile file = new(100_000);
        await using Server server = await StartAsync(m, context => SendAsync(context, file.FullName));
        await using SslStream client = await server.ConnectAsync();
        string heads = "";
        for (int request = 1; request <= 2; request++)
        {
            await client.WriteAsync(Encoding.ASCII.GetBytes(
                $"GET / HTTP/1.0\r\n{(request == 1 ? "Connection: keep-alive\r\n" : "")}\r\n")).InTime();
            string head = await Raw.ReadHeadAsync(client);
            byte[] body = new byte[100_000];
            await client.ReadExactlyAsync(body).InTime();
            Pattern.AssertAt(0, body);
            heads += head[..head.IndexOf("Date", StringComparison.Ordinal)] + head[(head.IndexOf("GMT", StringComparison.Ordinal) + 3)..];
        }

        Assert.Equal(0, await client.ReadAsync(new byte[1]).InTime("the end"));
        AssertNoneWasCopied(server);
        return heads;
    });

    /// <summary>A small file shares the record of the head.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_small_file_is_one_record(TlsMode mode)
    {
        using PatternFile file = new(1_000);
        await using Server server = await StartAsync(mode, context => SendAsync(context, file.FullName));
        await using RecordMeter meter = new(await server.ConnectSocketAsync());
        await using SslStream client = new(meter);
        await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(System.Security.Authentication.SslProtocols.Tls13)).InTime();
        await client.WriteAsync("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"u8.ToArray()).InTime();
        await Raw.ReadHeadAsync(client);
        byte[] body = new byte[1_000];
        await client.ReadExactlyAsync(body).InTime();

        Pattern.AssertAt(0, body);
        Assert.InRange(meter.Records[^1], 1_001, 2_000);
    }

    private static Task<Server> StartAsync(TlsMode mode, RequestDelegate handler) =>
        Server.StartAsync(mode, application: application => application.Map("{**path}", handler));

    /// <summary>Sends the file, or the part that the query names.</summary>
    private static Task SendAsync(HttpContext context, string path)
    {
        long offset = Number("offset") ?? 0;
        long? count = Number("count");
        context.Response.ContentLength = count ?? new FileInfo(path).Length - offset;
        return context.Response.SendFileAsync(path, offset, count);

        long? Number(string name) =>
            long.TryParse(context.Request.Query[name].ToString(), CultureInfo.InvariantCulture, out long value) ? value : null;
    }

    private static void AssertNoneWasCopied(Server server) =>
        Assert.DoesNotContain(server.Events.Entries, e => e.Id.Name == nameof(LogMessages.FileIsCopied));
}
