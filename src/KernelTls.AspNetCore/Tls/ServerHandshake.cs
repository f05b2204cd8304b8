using System.Net.Security;
using System.Runtime.ExceptionServices;
using System.Security.Authentication;
using KernelTls.AspNetCore.Transport;
using KernelTls.Interop;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// One connection's handshake. Where its options depend on the ClientHello, that is looked at first and left in the socket: so
/// options that only the stock stream honours are honoured by it, as those of any other endpoint.
/// </summary>
/// <param name="endpoint">The endpoint's options.</param>
/// <param name="connection">The connection, whose socket is the stream's.</param>
/// <param name="stream">The stream that shakes hands.</param>
/// <param name="tlsFeature">Kestrel's feature of the connection.</param>
/// <param name="report">Told when the options are known.</param>
internal sealed class ServerHandshake(
    EndpointOptions endpoint, DeferredConnection connection, KtlsStream stream, object tlsFeature, HandshakeReport report)
{
    /// <exception cref="AuthenticationException">The handshake failed.</exception>
    /// <exception cref="IOException">The connection failed.</exception>
    public async Task RunAsync(CancellationToken cancellationToken)
    {
        byte[] record = endpoint.NeedClientHello ? await PeekAsync(cancellationToken).ConfigureAwait(false) : [];
        bool isKnown = ClientHelloParser.TryParse(record, out SslClientHelloInfo hello);
        if (endpoint.AreChosen && !isKnown)
        {
            // In parts, or none at all: OpenSSL puts it together, or says what is wrong with it.
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

        if (KestrelInternals.AllowsDelayedCertificate(tlsFeature) && MayRenegotiate(options, hello.SslProtocols))
        {
            stream.StayManaged(KtlsFallbackReason.DelayedCertificate);
        }

        await stream.AuthenticateAsServerAsync(options, cancellationToken).ConfigureAwait(false);
    }

    /// <summary>An abort disposes the socket, which the wait for the rest of a hello does not notice.</summary>
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

    /// <summary>The client is told that it is not to blame, instead of a reset. The hello is there: this waits for nothing.</summary>
    private Task RefuseAsync(ExceptionDispatchInfo failure) => stream.AuthenticateAsServerAsync(
        (_, _, _, _) =>
        {
            failure.Throw();
            return default;
        },
        state: null,
        CancellationToken.None);

    /// <summary>
    /// Asking this client for its certificate later would take a renegotiation, which kernel TLS has not: TLS 1.2, and HTTP/1.
    /// HTTP/2 forbids it (RFC 9113, section 9.2.1), so that nobody asks.
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
