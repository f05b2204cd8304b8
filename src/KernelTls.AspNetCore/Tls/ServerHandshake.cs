using System.Net.Security;
using System.Runtime.ExceptionServices;
using System.Security.Authentication;
using KernelTls.AspNetCore.Internals;
using KernelTls.AspNetCore.Transport;
using KernelTls.Interop;

namespace KernelTls.AspNetCore.Tls;

/// <summary>Performs the handshake of one connection.</summary>
/// <remarks>
/// If the options depend on the ClientHello, it is peeked at and left in the socket. Options that only the base class
/// supports therefore still work, as on any other endpoint.
/// </remarks>
/// <param name="endpoint">The endpoint's options.</param>
/// <param name="connection">The connection, which owns the stream's socket.</param>
/// <param name="stream">The stream that performs the handshake.</param>
/// <param name="tlsFeature">Kestrel's feature of the connection.</param>
/// <param name="report">The report, which is started when the options are known.</param>
internal sealed class ServerHandshake(
    EndpointOptions endpoint, DeferredConnection connection, KtlsStream stream, KestrelTlsFeature tlsFeature, HandshakeReport report)
{
    /// <summary>Performs the handshake.</summary>
    /// <exception cref="AuthenticationException">The handshake failed.</exception>
    /// <exception cref="IOException">The connection failed.</exception>
    public async Task RunAsync(CancellationToken cancellationToken)
    {
        byte[] record = endpoint.NeedClientHello ? await PeekAsync(cancellationToken).ConfigureAwait(false) : [];
        bool isKnown = ClientHelloParser.TryParse(record, out SslClientHelloInfo hello);
        if (endpoint.AreChosen && !isKnown)
        {
            // The ClientHello is fragmented or missing. OpenSSL reassembles it, or reports what is wrong.
            await stream.AuthenticateAsServerAsync(
                (_, late, _, token) => CreateOptionsAsync(late, token), state: null, cancellationToken).ConfigureAwait(false);
            return;
        }

        SslServerAuthenticationOptions options;
        try
        {
            if (record.Length > 0)
            {
                endpoint.Show(connection, record);
            }

            if (isKnown)
            {
                RuntimeInternals.PublishTargetHost(stream, hello.ServerName);
            }

            options = await CreateOptionsAsync(hello, cancellationToken).ConfigureAwait(false);
        }
        catch (Exception e) when (isKnown)
        {
            await RefuseAsync(ExceptionDispatchInfo.Capture(e)).ConfigureAwait(false);
            throw;
        }

        if (tlsFeature.AllowsDelayedCertificate && MayRenegotiate(options, hello.SslProtocols))
        {
            stream.StayManaged(KtlsFallbackReason.DelayedCertificate);
        }

        await stream.AuthenticateAsServerAsync(options, cancellationToken).ConfigureAwait(false);
    }

    /// <summary>
    /// Peeks at the ClientHello. The linked token is needed because an abort disposes the socket, which the wait for
    /// the rest of a ClientHello does not notice.
    /// </summary>
    private async Task<byte[]> PeekAsync(CancellationToken cancellationToken)
    {
        using CancellationTokenSource either = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken, connection.ConnectionClosed);
        try
        {
            return await ClientHelloPeek.ReadAsync(connection.Socket, either.Token).ConfigureAwait(false);
        }
        catch (OperationCanceledException e) when (connection.AbortReason is { } reason)
        {
            throw new IOException(reason.Message, e);
        }
    }

    private async ValueTask<SslServerAuthenticationOptions> CreateOptionsAsync(SslClientHelloInfo hello, CancellationToken cancellationToken)
    {
        SslServerAuthenticationOptions options = await endpoint.CreateAsync(
            connection, stream, tlsFeature, hello, cancellationToken).ConfigureAwait(false);
        report.Started(options);
        return options;
    }

    /// <summary>
    /// Refuses the client with an alert that blames this end, instead of a reset. Does not wait, because the
    /// ClientHello has arrived.
    /// </summary>
    private Task RefuseAsync(ExceptionDispatchInfo failure) => stream.AuthenticateAsServerAsync(
        (_, _, _, _) =>
        {
            failure.Throw();
            return default;
        },
        state: null,
        CancellationToken.None);

    /// <summary>
    /// Returns whether requesting this client's certificate later would need a renegotiation, which kernel TLS does not
    /// support: TLS 1.2 with HTTP/1. HTTP/2 forbids such requests (RFC 9113, section 9.2.1).
    /// </summary>
    private static bool MayRenegotiate(SslServerAuthenticationOptions options, SslProtocols offered)
    {
        if (options.EnabledSslProtocols == SslProtocols.Tls13
            || options.ApplicationProtocols is [var only] && only == SslApplicationProtocol.Http2)
        {
            return false;
        }

        bool isTls13 = offered.HasFlag(SslProtocols.Tls13)
            && (options.EnabledSslProtocols == SslProtocols.None || options.EnabledSslProtocols.HasFlag(SslProtocols.Tls13))
            && options.CipherSuitesPolicy is null;
        return !isTls13;
    }
}
