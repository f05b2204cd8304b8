using System.Net.Security;
using System.Net.Sockets;
using KernelTls.AspNetCore.Tls;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests files that are not sent, or not completely, in every mode as on the stock server.</summary>
[Trait("loop", "outer-kernel")]
public class FileFailureTests
{
    /// <summary>A size that exceeds what sockets and pipes hold.</summary>
    internal const int Large = 60_000_000;

    public static TheoryData<TlsMode> All => [.. Modes.Every];

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    public static TheoryData<TlsMode, int> BothSizes => Modes.With(1_000, 200_000);

    [Theory]
    [MemberData(nameof(All))]
    public Task What_cannot_be_sent_throws_before_anything_is(TlsMode mode) => SideBySide.RunAsync(mode, async m =>
    {
        using PatternFile file = new(100_000);
        string directory = Path.GetDirectoryName(file.FullName)!;
        List<string> failures = [];
        await using Server server = await StartAsync(m, async context =>
        {
            foreach ((string? path, long offset, long? count) in new (string?, long, long?)[]
            {
                (file.FullName, -1, null), (file.FullName, 100_001, null), (file.FullName, 0, -1), (file.FullName, 0, 100_001),
                (file.FullName, 99_999, 2), (file.FullName, long.MaxValue, long.MaxValue), ("/proc/self/stat", 0, 10),
                (Path.Combine(directory, "none"), 0, null), (Path.Combine(directory, "none", "none"), 0, 10), (directory, 0, null),
                ("", 0, null), (null, 0, null),
            })
            {
                context.Response.ContentLength = 10;
                Exception e = await Assert.ThrowsAnyAsync<Exception>(() => context.Response.SendFileAsync(path!, offset, count));
                failures.Add($"{path?.Replace(directory, "", StringComparison.Ordinal)} {offset} {count}: {e.GetType()} {(e as ArgumentException)?.ParamName}");
                Assert.False(context.Response.HasStarted);
            }

            // Sending nothing of a file is no failure. After the failures, another file can still be sent.
            await context.Response.SendFileAsync(file.FullName, 100_000, null);
            await context.Response.SendFileAsync(file.FullName, 0, 0);
            await context.Response.SendFileAsync(file.FullName, 7, 10);
        });
        using HttpClient client = Server.CreateClient();

        Pattern.AssertAt(7, await client.GetByteArrayAsync(server.Https).InTime());
        return failures.ToArray();
    });

    [Theory]
    [MemberData(nameof(BothSizes))]
    public Task Kestrel_judges_a_file_that_is_not_as_long_as_the_response(TlsMode mode, int size) => SideBySide.RunAsync(mode, async m =>
    {
        using PatternFile file = new(size);
        List<string> endings = [];
        foreach (int length in new[] { size - 1, size + 1 })
        {
            await using Server server = await StartAsync(m, Sending(file, length));
            server.FailsOnPurpose = true;
            using HttpClient client = Server.CreateClient();
            Exception seen = await Assert.ThrowsAsync<HttpRequestException>(() => client.GetByteArrayAsync(server.Https).InTime());
            Server.Log.Entry error = await server.Events.WaitForAsync(e => e.Level == LogLevel.Error, "the error");
            endings.Add($"{seen.GetType().Name} {error.Id} {error.Exception!.GetType()}");
            if (length > size)
            {
                Assert.Contains($"({size} of {length})", error.Exception.Message, StringComparison.Ordinal);
            }

            await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", "the connection to stop");
        }

        return endings.ToArray();
    });

    [Theory]
    [MemberData(nameof(BothSizes))]
    public Task Responses_without_a_body_take_none(TlsMode mode, int size) => SideBySide.RunAsync(mode, async m =>
    {
        using PatternFile file = new(size);
        List<string> answers = [];
        List<string> outcomes = [];
        using SemaphoreSlim handled = new(0);
        await using Server server = await StartAsync(m, async context =>
        {
            int status = int.Parse(context.Request.Path.Value![1..], System.Globalization.CultureInfo.InvariantCulture);
            context.Response.StatusCode = status;
            context.Response.ContentLength = status == 204 ? null : size;
            Exception? e = await Record.ExceptionAsync(() => context.Response.SendFileAsync(file.FullName));
            outcomes.Add($"{status}: {e?.GetType()} {e?.Message}");
            handled.Release();
        });
        using HttpClient client = Server.CreateClient();
        foreach ((HttpMethod method, int status) in new[]
        {
            (HttpMethod.Head, 200), (HttpMethod.Get, 304), (HttpMethod.Get, 204), (HttpMethod.Head, 304), (HttpMethod.Get, 200),
        })
        {
            using HttpRequestMessage request = new(method, new Uri(server.Https, $"/{status}"));
            using HttpResponseMessage response = await client.SendAsync(request).InTime();
            int length = (await response.Content.ReadAsByteArrayAsync().InTime()).Length;
            answers.Add($"{method} {response.StatusCode} {response.Content.Headers.ContentLength} {length}");

            // The client may have the whole response before the server's code continues.
            await handled.WaitAsync().InTime("the end of the request's code");
        }

        Assert.Single(server.Events.Entries, e => e.Id.Name == "ConnectionStart");
        await UntilClosedAsync(file);
        return answers.Concat(outcomes).ToArray();
    });

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_slow_reader_holds_the_file_back(TlsMode mode)
    {
        const int Size = 500_000_000;
        using PatternFile file = Sparse(Size);
        TaskCompletionSource ended = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Server server = await StartAsync(mode, async context =>
        {
            context.Response.ContentLength = Size;
            await context.Response.SendFileAsync(file.FullName);
            ended.SetResult();
        });
        await using SslStream client = await server.ConnectAsync();
        long before = GC.GetTotalMemory(forceFullCollection: true);
        await Raw.SendRequestAsync(client, "/");
        await Raw.ReadHeadAsync(client);

        await ended.Task.StaysPending();
        Assert.InRange(GC.GetTotalMemory(forceFullCollection: false) - before, long.MinValue, 30_000_000);
        await client.ReadExactlyAsync(new byte[5_000_000]).InTime();
        Assert.False(ended.Task.IsCompleted);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_that_leaves_ends_the_file(TlsMode mode)
    {
        foreach (bool reset in new[] { true, false })
        {
            using PatternFile file = Sparse(Large);
            TaskCompletionSource<Exception?> ended = new(TaskCreationOptions.RunContinuationsAsynchronously);
            await using Server server = await StartAsync(mode, async context =>
            {
                context.Response.ContentLength = Large;
                ended.SetResult(await Record.ExceptionAsync(() => context.Response.SendFileAsync(file.FullName)));
            });
            using Socket socket = await server.ConnectSocketAsync();
            await using SslStream client = new(new NetworkStream(socket));
            await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(System.Security.Authentication.SslProtocols.Tls13)).InTime();
            await Raw.SendRequestAsync(client, "/");
            await Raw.ReadHeadAsync(client);
            await ended.Task.StaysPending();

            if (reset)
            {
                socket.Close(timeout: 0);
            }
            else
            {
                // Unread data makes it a reset as well, after a FIN.
                socket.Dispose();
            }

            Assert.Null(await ended.Task.InTime("the handler"));
            await UntilClosedAsync(file);
            await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", "the connection to stop");
            Assert.DoesNotContain(server.Events.Entries, e => e.Level > LogLevel.Information);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Cancelled_by_the_application_it_ends_at_once(TlsMode mode)
    {
        foreach (bool abort in new[] { false, true })
        {
            using PatternFile file = Sparse(Large);
            using CancellationTokenSource cancellation = new();
            TaskCompletionSource<HttpContext> begun = new(TaskCreationOptions.RunContinuationsAsynchronously);
            TaskCompletionSource<Exception?> ended = new(TaskCreationOptions.RunContinuationsAsynchronously);
            await using Server server = await StartAsync(mode, async context =>
            {
                context.Response.ContentLength = Large;
                begun.SetResult(context);
                ended.SetResult(await Record.ExceptionAsync(
                    () => context.Response.SendFileAsync(file.FullName, 0, null, abort ? default : cancellation.Token)));
            });
            await using SslStream client = await SendRequestAsync(server);
            await ended.Task.StaysPending();

            HttpContext context = await begun.Task.InTime();
            if (abort)
            {
                context.Abort();
            }
            else
            {
                await cancellation.CancelAsync();
            }

            Exception? failure = await ended.Task.InTime("the handler");
            if (abort)
            {
                Assert.Null(failure);
            }
            else
            {
                Assert.IsAssignableFrom<OperationCanceledException>(failure);
            }

            await UntilClosedAsync(file);
            Assert.NotNull(await Record.ExceptionAsync(() => client.ReadExactlyAsync(new byte[Large]).InTime("the reset")));
            await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", "the connection to stop");
        }
    }

    /// <summary>Ending the wait of a flush does not end the file. (The stock server corrupts it.)</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_cancelled_flush_loses_nothing_of_it(TlsMode mode)
    {
        const int Size = 20_000_000;
        using PatternFile file = new(Size);
        TaskCompletionSource<HttpContext> begun = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Server server = await StartAsync(mode, context =>
        {
            context.Response.ContentLength = Size;
            Task sending = context.Response.SendFileAsync(file.FullName);
            begun.SetResult(context);
            return sending;
        });
        await using SslStream client = await server.ConnectAsync();
        await Raw.SendRequestAsync(client, "/");
        HttpContext context = await begun.Task.InTime("the file to begin");
        await Raw.ReadHeadAsync(client);
        for (int part = 0; part < 4; part++)
        {
            context.Response.BodyWriter.CancelPendingFlush();
            byte[] body = new byte[Size / 4];
            await client.ReadExactlyAsync(body).InTime();
            Pattern.AssertAt(part * (Size / 4), body);
        }

        await UntilClosedAsync(file);
    }

    /// <summary>
    /// Kestrel has promised the client more than exists: the client sees a truncation, and the log contains an error.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public Task A_file_that_shrinks_is_a_truncated_response(TlsMode mode) => SideBySide.RunAsync(mode, async m =>
    {
        using PatternFile file = Sparse(Large);
        await using Server server = await StartAsync(m, Sending(file, Large));
        server.FailsOnPurpose = true;
        using HttpClient client = Server.CreateClient();
        using HttpResponseMessage response = await client.GetAsync(server.Https, HttpCompletionOption.ResponseHeadersRead).InTime();
        using (FileStream writable = new(file.FullName, FileMode.Open, FileAccess.Write, FileShare.ReadWrite))
        {
            writable.SetLength(Large - 1);
        }

        HttpRequestException seen = await Assert.ThrowsAsync<HttpRequestException>(() => response.Content.ReadAsByteArrayAsync().InTime());
        Server.Log.Entry error = await server.Events.WaitForAsync(e => e.Level == LogLevel.Error, "the error");
        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", "the connection to stop");
        await UntilClosedAsync(file);
        return $"{seen.GetType()} {seen.InnerException is IOException} {error.Id} {error.Category} {error.Exception!.GetType()}";
    });

    /// <summary>Returns a handler that sets this length and sends the file as the body.</summary>
    internal static RequestDelegate Sending(PatternFile file, int length) => context =>
    {
        context.Response.ContentLength = length;
        return context.Response.SendFileAsync(file.FullName);
    };

    /// <summary>Returns a client that has read the head of the response and reads nothing more.</summary>
    internal static async Task<SslStream> SendRequestAsync(Server server)
    {
        SslStream client = await server.ConnectAsync();
        await Raw.SendRequestAsync(client, "/");
        await Raw.ReadHeadAsync(client);
        return client;
    }

    /// <summary>Starts a server with small send buffers.</summary>
    internal static Task<Server> StartAsync(TlsMode mode, RequestDelegate handler, MinDataRate? rate = null) => Server.StartAsync(
        mode,
        https => https.OnAuthenticate = static (connection, _) =>
            connection.Features.Get<IConnectionSocketFeature>()!.Socket.SendBufferSize = 64 * 1024,
        kestrel: kestrel => kestrel.Limits.MinResponseDataRate = rate,
        application: application => application.Map("{**path}", handler));

    /// <summary>Creates a file that is one hole.</summary>
    internal static PatternFile Sparse(int size)
    {
        PatternFile file = new(0);
        using FileStream writable = new(file.FullName, FileMode.Open, FileAccess.Write, FileShare.ReadWrite);
        writable.SetLength(size);
        return file;
    }

    /// <summary>Returns the number of open handles of the file, including its own.</summary>
    private static int OpenHandles(PatternFile file) =>
        new DirectoryInfo("/proc/self/fd").EnumerateFileSystemInfos().Count(f => f.LinkTarget == file.FullName);

    internal static async Task UntilClosedAsync(PatternFile file)
    {
        using PeriodicTimer timer = new(TimeSpan.FromMilliseconds(20));
        for (long deadline = Environment.TickCount64 + (long)TimeSpan.FromSeconds(2).TotalMilliseconds; OpenHandles(file) > 1;)
        {
            Assert.True(Environment.TickCount64 < deadline, "Waited 2 s for the file to be closed.");
            await timer.WaitForNextTickAsync();
        }
    }
}
