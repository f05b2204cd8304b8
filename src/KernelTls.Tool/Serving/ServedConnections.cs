using System.Diagnostics;
using System.Net.Security;
using System.Runtime.CompilerServices;
using System.Security.Authentication;
using KernelTls.AspNetCore;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;

namespace KernelTls.Tool.Serving;

/// <summary>The connections, as a middleware in front of UseHttps and one behind it see them.</summary>
internal sealed class ServedConnections(ServeReport report, HandshakeFailures failures)
{
    private int _served;
    private int _open;

    /// <summary>How many have been served.</summary>
    public int Served => _served;

    /// <summary>The middleware in front: tells of those that came to no handshake.</summary>
    public ConnectionDelegate Accept(ConnectionDelegate next) => async connection =>
    {
        long started = Stopwatch.GetTimestamp();
        StrongBox<string?> why = failures.Watch();
        try
        {
            await next(connection);
        }
        finally
        {
            if (connection.Features.Get<Description>() is null)
            {
                report.Failed(connection.ConnectionId, $"{connection.RemoteEndPoint}", Seconds(started), why.Value);
            }
        }
    };

    /// <summary>The middleware behind.</summary>
    public ConnectionDelegate Track(ConnectionDelegate next) => async connection =>
    {
        ITlsHandshakeFeature tls = connection.Features.GetRequiredFeature<ITlsHandshakeFeature>();
        IKtlsFeature? kernel = connection.Features.Get<IKtlsFeature>();
        string protocol = connection.Features.Get<ITlsApplicationProtocolFeature>() is { ApplicationProtocol: { Length: > 0 } name }
            ? System.Text.Encoding.ASCII.GetString(name.Span)
            : "";
        Description description = new(
            connection.ConnectionId,
            $"{connection.RemoteEndPoint}",
            tls.Protocol,
            tls.NegotiatedCipherSuite,
            protocol,
            kernel?.Offload.ToString() ?? "stock");
        connection.Features.Set(description);
        Interlocked.Increment(ref _served);
        Interlocked.Increment(ref _open);
        long started = Stopwatch.GetTimestamp();
        report.Opened(description);
        try
        {
            await next(connection);
        }
        finally
        {
            report.Closed(description, Seconds(started), Interlocked.Decrement(ref _open));
        }
    };

    private static double Seconds(long started) => Math.Round(Stopwatch.GetElapsedTime(started).TotalSeconds, 3);

    /// <param name="Id">Kestrel's.</param>
    /// <param name="Client">Where it comes from.</param>
    /// <param name="Protocol">The TLS version.</param>
    /// <param name="CipherSuite">The suite.</param>
    /// <param name="ApplicationProtocol">What ALPN came to, or empty.</param>
    /// <param name="Offload">Who encrypts and decrypts; <c>stock</c>: the stock TLS serves it.</param>
    internal sealed record Description(
        string Id, string Client, SslProtocols Protocol, TlsCipherSuite? CipherSuite, string ApplicationProtocol, string Offload);
}
