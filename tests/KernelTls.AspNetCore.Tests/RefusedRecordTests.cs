using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text;
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

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

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
        using Socket socket = await server.ConnectSocketAsync();
        await using SslStream client = new(new NetworkStream(socket));
        await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)).InTime();
        await client.WriteAsync(Encoding.ASCII.GetBytes("POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nbody")).InTime();

        // If the record arrives before the read begins, the request is aborted first, as if the client had disconnected.
        await isReading.Task.InTime("the application to read the rest of the body");
        await socket.SendAsync(s_unprotected).InTime();

        Assert.IsAssignableFrom<IOException>(await read.Task.InTime("the failure of the body's read"));
        Assert.True(log.HasAborted);
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
