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

/// <summary>Tracks the connections by a middleware in front of UseHttps and one behind it.</summary>
internal sealed class ServedConnections(ServeReport report, HandshakeFailures failures)
{
    private int _served;
    private int _open;

    /// <summary>Gets the number of connections served.</summary>
    public int Served => _served;

    /// <summary>Creates the middleware in front, which reports connections without a completed handshake.</summary>
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

    /// <summary>Creates the middleware behind, which reports connections after the handshake.</summary>
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

    /// <summary>Describes a connection.</summary>
    /// <param name="Id">Kestrel's identifier.</param>
    /// <param name="Client">The client's address.</param>
    /// <param name="Protocol">The TLS version.</param>
    /// <param name="CipherSuite">The suite.</param>
    /// <param name="ApplicationProtocol">The negotiated ALPN protocol, or an empty string.</param>
    /// <param name="Offload">The data paths, or <c>stock</c> for a stock SslStream.</param>
    internal sealed record Description(
        string Id, string Client, SslProtocols Protocol, TlsCipherSuite? CipherSuite, string ApplicationProtocol, string Offload);
}
