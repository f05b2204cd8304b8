using System.Runtime.CompilerServices;
using KernelTls.Tool.Peers;
using Microsoft.Extensions.Logging;

namespace KernelTls.Tool.Serving;

/// <summary>Collects the reasons of failed handshakes from Kestrel's log. Thread-safe.</summary>
/// <remarks>
/// Kestrel reports the reason only by a log entry, which Kestrel's HTTPS middleware and kernel TLS both write in the
/// asynchronous flow of the connection.
/// </remarks>
internal sealed class HandshakeFailures : ILoggerProvider, ILogger
{
    /// <summary>The category under which Kestrel logs them, at <see cref="LogLevel.Debug"/>.</summary>
    public const string Category = "Microsoft.AspNetCore.Server.Kestrel.Https.Internal.HttpsConnectionMiddleware";

    private const int Failed = 1;
    private const int TimedOut = 2;

    private readonly AsyncLocal<StrongBox<string?>?> _watched = new();

    /// <summary>Returns a box that receives the reason why the handshake in this asynchronous flow fails.</summary>
    public StrongBox<string?> Watch() => _watched.Value = new StrongBox<string?>();

    public ILogger CreateLogger(string categoryName) => this;

    public bool IsEnabled(LogLevel logLevel) => true;

    public IDisposable? BeginScope<TState>(TState state)
        where TState : notnull => null;

    public void Log<TState>(
        LogLevel logLevel, EventId eventId, TState state, Exception? exception, Func<TState, Exception?, string> formatter)
    {
        if (eventId.Id is Failed or TimedOut && _watched.Value is { } box)
        {
            box.Value = eventId.Id == Failed && exception is not null ? PeerSettings.Describe(exception) : formatter(state, null);
        }
    }

    public void Dispose()
    {
    }
}
