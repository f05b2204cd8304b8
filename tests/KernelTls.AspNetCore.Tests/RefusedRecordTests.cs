using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests the error of a request whose client sends a record that TLS refuses.</summary>
public class RefusedRecordTests
{
    /// <summary>A record of application data that was not encrypted.</summary>
    private static readonly byte[] s_unprotected = [23, 3, 3, 0, 32, .. new byte[32]];

    /// <summary>A record of a version that does not exist.</summary>
    private static readonly byte[] s_otherVersion = [23, 9, 9, 0, 32, .. new byte[32]];

    /// <summary>A request with a part of its body.</summary>
    private static readonly byte[] s_head = [.. "POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nbody"u8];

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    public static TheoryData<TlsMode, byte[]> EveryWithRecords => Modes.With(s_unprotected, s_otherVersion);

    /// <summary>
    /// Kestrel aborts a connection that has failed. The application's error is that of the record, as on the stock server,
    /// and not that of the abort.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_request_gets_the_refusal_although_the_connection_is_aborted_meanwhile(TlsMode mode)
    {
        ConnectionContext? connection = null;
        using AbortingLog log = new(() => connection!.Abort());
        TaskCompletionSource isReading = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource<Exception?> read = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Server server = await Server.StartAsync(
            mode,
            listen: endpoint => endpoint.Use(next => context =>
            {
                connection = context;
                return next(context);
            }),
            builder: builder => builder.Logging.AddProvider(log),
            application: application => application.MapPost("/read", async (HttpContext context) =>
            {
                await context.Request.Body.ReadExactlyAsync(new byte[4]);
                Task<int> rest = context.Request.Body.ReadAsync(new byte[1]).AsTask();
                isReading.SetResult();
                read.SetResult(await Record.ExceptionAsync(async () => await rest));
            }));

        // If the request ends before Kestrel learns that its connection has ended, Kestrel drains the body, on which a read failed, and logs
        // an error: "Reading is already in progress". The stock server does the same.
        server.FailsOnPurpose = true;
        using Socket socket = await server.ConnectSocketAsync();
        await using SslStream client = await PostAsync(socket);

        await isReading.Task.InTime("the application to read the rest of the body");
        await socket.SendAsync(s_unprotected).InTime();

        Assert.IsAssignableFrom<IOException>(await read.Task.InTime("the failure of the body's read"));
        Assert.True(log.HasAborted);
    }

    /// <summary>
    /// The kernel refuses a record of another version when it arrives, and the stock server when it reads on. In both, the
    /// request can read the data before the record, and only the next read fails.
    /// </summary>
    [Theory]
    [MemberData(nameof(EveryWithRecords))]
    public async Task A_request_that_does_not_read_is_not_aborted(TlsMode mode, byte[] record)
    {
        TaskCompletionSource begun = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource<Exception?> read = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Server server = await Server.StartAsync(
            mode,
            application: application => application.MapPost("/read", async (HttpContext context) =>
                read.SetResult(await Record.ExceptionAsync(async () =>
                {
                    begun.SetResult();
                    await Task.Delay(TimeSpan.FromSeconds(1), context.RequestAborted);
                    byte[] body = new byte[4];
                    await context.Request.Body.ReadExactlyAsync(body);
                    Assert.Equal("body"u8, body);
                    await Assert.ThrowsAnyAsync<IOException>(async () => await context.Request.Body.ReadAsync(body));
                }))));
        server.FailsOnPurpose = true;
        using Socket socket = await server.ConnectSocketAsync();
        await using SslStream client = await PostAsync(socket);
        await begun.Task.InTime("the request to begin");

        await socket.SendAsync(record).InTime();

        Assert.Null(await read.Task.InTime("the request to read"));
    }

    /// <summary>A request learns that its client has disconnected, although a record before the end will be refused.</summary>
    [Theory]
    [MemberData(nameof(EveryWithRecords))]
    public async Task A_request_learns_of_the_disconnection_after_the_record(TlsMode mode, byte[] record)
    {
        TaskCompletionSource begun = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource aborted = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Server server = await Server.StartAsync(
            mode,
            application: application => application.MapPost("/read", async (HttpContext context) =>
            {
                context.RequestAborted.Register(aborted.SetResult);
                begun.SetResult();
                await aborted.Task;
            }));
        server.FailsOnPurpose = true;
        using Socket socket = await server.ConnectSocketAsync();
        await using SslStream client = await PostAsync(socket);
        await begun.Task.InTime("the request to begin");
        await socket.SendAsync(record).InTime();
        await Task.Delay(TimeSpan.FromMilliseconds(200));
        Assert.False(aborted.Task.IsCompleted);

        socket.Shutdown(SocketShutdown.Send);

        await aborted.Task.InTime("the request to be aborted");
    }

    /// <summary>
    /// A send meets the kernel's error before the read in progress does. Kestrel then closes the socket, but the client gets the alert
    /// first, as from OpenSSL on the socket.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task The_client_gets_the_alert_although_a_send_meets_the_record_first(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(
            mode,
            application: application => application.MapPost("/read", async (HttpContext context) =>
            {
                await context.Request.Body.ReadExactlyAsync(new byte[4]);
                Task<int> rest = context.Request.Body.ReadAsync(new byte[1]).AsTask();

                // No more packets than TCP sends without an acknowledgment: a reset discards those that were not sent, and the alert is last.
                for (int i = 0; i < 5 && !rest.IsCompleted && !context.RequestAborted.IsCancellationRequested; i++)
                {
                    await context.Response.WriteAsync("a");
                    await Task.Yield();
                }

                await rest;
            }));
        server.FailsOnPurpose = true;

        // Which of the two meets it is chance.
        for (int i = 0; i < 100; i++)
        {
            using Socket socket = await server.ConnectSocketAsync();
            using TlsPeer peer = new(socket, SslProtocols.Tls13, isServer: false, "http/1.1");
            Assert.True(await peer.ShakeHandsAsync().InTime("the handshake"));
            peer.Watch();
            await peer.SendAsync(peer.Seal(RecordType.ApplicationData, s_head)).InTime();
            await peer.UntilAsync(data => data.Length > 0).InTime("the response to begin");

            await peer.SendAsync(s_unprotected).InTime();

            string end = await peer.Ended.InTime("the connection's end");
            Assert.True(peer.Alerts is ["bad_record_mac"], $"connection {i}: {end}, alerts: {string.Join(", ", peer.Alerts)}");
        }
    }

    private static async Task<SslStream> PostAsync(Socket socket)
    {
        SslStream client = new(new NetworkStream(socket));
        await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)).InTime();
        await client.WriteAsync(s_head).InTime();
        return client;
    }

    /// <summary>Aborts when the transport logs that a connection failed, which it does before it passes on the failure.</summary>
    private sealed class AbortingLog(Action abort) : ILoggerProvider, ILogger
    {
        public bool HasAborted { get; private set; }

        public ILogger CreateLogger(string categoryName) => this;

        public IDisposable? BeginScope<TState>(TState state)
            where TState : notnull => null;

        public bool IsEnabled(LogLevel logLevel) => true;

        public void Log<TState>(LogLevel logLevel, EventId eventId, TState state, Exception? exception, Func<TState, Exception?, string> formatter)
        {
            if (eventId.Name == "ConnectionFailed")
            {
                abort();
                HasAborted = true;
            }
        }

        public void Dispose()
        {
        }
    }
}
