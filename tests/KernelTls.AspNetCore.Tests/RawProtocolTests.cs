using System.Buffers;
using System.IO.Pipelines;
using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests connection middleware behind UseHttps that uses a protocol other than HTTP, directly on the pipe.
/// </summary>
public class RawProtocolTests
{
    public static TheoryData<TlsMode> All => [.. Modes.Every];

    [Theory]
    [MemberData(nameof(All))]
    public async Task An_echo_is_intact(TlsMode mode)
    {
        const int Size = 3_000_001;
        await using Server server = await StartAsync(mode, EchoAsync);
        await using SslStream client = await server.ConnectAsync();

        Task sending = Pattern.SendAsync(client, Size, chunk: 10_000);
        await Pattern.ReceiveAsync(client, Size).InTime();
        await sending.InTime();
        await client.ShutdownAsync().InTime();

        Assert.Equal(0, await client.ReadAsync(new byte[1]).InTime("the server's end"));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task What_was_never_flushed_is_sent_at_the_end(TlsMode mode)
    {
        await using Server server = await StartAsync(mode, context =>
        {
            context.Transport.Output.Write(Pattern.Take(50_000));
            return Task.CompletedTask;
        });
        await using SslStream client = await server.ConnectAsync();

        await Pattern.ReceiveAsync(client, 50_000).InTime();

        Assert.Equal(0, await client.ReadAsync(new byte[1]).InTime("the server's end"));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_that_resets_is_that_to_the_reader(TlsMode mode)
    {
        TaskCompletionSource<Exception?> ending = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Server server = await StartAsync(mode, async context => ending.SetResult(await ReadToEndAsync(context)));
        using Socket socket = await server.ConnectSocketAsync();
        await using SslStream client = new(new NetworkStream(socket));
        await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(System.Security.Authentication.SslProtocols.Tls13)).InTime();
        Assert.Equal(1, await client.ReadAsync(new byte[1]).InTime("the server to have shaken hands"));

        socket.Close(0);

        Assert.IsType<ConnectionResetException>(await ending.Task.InTime("the reader"));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task An_aborted_connection_is_that_to_the_reader(TlsMode mode)
    {
        TaskCompletionSource<Exception?> ending = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource closed = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Server server = await StartAsync(mode, async context =>
        {
            context.ConnectionClosed.UnsafeRegister(_ => closed.SetResult(), null);
            Task<Exception?> reading = ReadToEndAsync(context);
            context.Abort(new ConnectionAbortedException("on purpose"));
            ending.SetResult(await reading);
        });
        await using SslStream client = await server.ConnectAsync();

        // The stock stream wraps it in an IOException, which Kestrel does not inspect further.
        Exception seen = (await ending.Task.InTime("the reader"))!;
        Assert.Equal("on purpose", Assert.IsType<ConnectionAbortedException>(seen is IOException ? seen.InnerException : seen).Message);
        await closed.Task.InTime("ConnectionClosed");
        await Assert.ThrowsAsync<IOException>(() => Pattern.ReceiveAsync(client, 2).InTime("the reset"));
    }

    /// <summary>
    /// A FIN without close_notify may truncate the data. It counts as the end, as on the stock server, unless the
    /// endpoint is configured otherwise.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_that_ends_without_close_notify_may_be_cut_off(TlsMode mode)
    {
        Assert.Null(await EndAsync(mode, requireCloseNotify: false));
        if (Modes.OnOpenSsl.Contains(mode))
        {
            Assert.IsType<ConnectionResetException>(await EndAsync(mode, requireCloseNotify: true));
        }
    }

    private static async Task<Exception?> EndAsync(TlsMode mode, bool requireCloseNotify)
    {
        TaskCompletionSource<Exception?> ending = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Server server = await StartAsync(
            mode, async context => ending.SetResult(await ReadToEndAsync(context)), o => o.RequireCloseNotify = requireCloseNotify);
        SslStream client = await server.ConnectAsync();
        Assert.Equal(1, await client.ReadAsync(new byte[1]).InTime("the server to have shaken hands"));

        await client.DisposeAsync();

        return await ending.Task.InTime("the reader");
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_cancelled_read_can_be_followed_by_another(TlsMode mode)
    {
        TaskCompletionSource cancelled = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Server server = await StartAsync(mode, async context =>
        {
            Task<ReadResult> reading = context.Transport.Input.ReadAsync().AsTask();
            context.Transport.Input.CancelPendingRead();
            Assert.True((await reading).IsCanceled);
            cancelled.SetResult();
            await EchoAsync(context);
        });
        await using SslStream client = await server.ConnectAsync();
        await cancelled.Task.InTime("the cancelled read");

        Task sending = Pattern.SendAsync(client, 100_000);
        await Pattern.ReceiveAsync(client, 100_000).InTime();
        await sending.InTime();
        await client.ShutdownAsync().InTime();
        Assert.Equal(0, await client.ReadAsync(new byte[1]).InTime("the server's end"));
    }

    private static Task<Server> StartAsync(
        TlsMode mode, Func<ConnectionContext, Task> protocol, Action<KtlsOptions>? tune = null) =>
        Server.StartAsync(mode, kestrel => kestrel.Listen(System.Net.IPAddress.Loopback, 0, endpoint =>
        {
            endpoint.Protocols = HttpProtocols.Http1;
            endpoint.UseHttps(Certificates.Ecdsa);
            endpoint.Run(protocol);
        }), builder =>
        {
            if (tune is not null && mode != TlsMode.Stock)
            {
                builder.WebHost.UseKernelTls(options =>
                {
                    KtlsOptions wanted = Modes.OptionsOf(mode);
                    (options.Mode, options.Fallback) = (wanted.Mode, wanted.Fallback);
                    tune(options);
                });
            }
        });

    private static async Task EchoAsync(ConnectionContext context)
    {
        while (true)
        {
            ReadResult result = await context.Transport.Input.ReadAsync();
            foreach (ReadOnlyMemory<byte> part in result.Buffer)
            {
                await context.Transport.Output.WriteAsync(part);
            }

            context.Transport.Input.AdvanceTo(result.Buffer.End);
            if (result.IsCompleted)
            {
                return;
            }
        }
    }

    /// <summary>
    /// Sends a byte, and returns the exception that ended the reading, or null for the end of the stream.
    /// </summary>
    private static async Task<Exception?> ReadToEndAsync(ConnectionContext context)
    {
        try
        {
            await context.Transport.Output.WriteAsync(Pattern.Take(1));
            while (true)
            {
                ReadResult result = await context.Transport.Input.ReadAsync();
                context.Transport.Input.AdvanceTo(result.Buffer.End);
                if (result.IsCompleted)
                {
                    return null;
                }
            }
        }
        catch (Exception e)
        {
            return e;
        }
    }
}
