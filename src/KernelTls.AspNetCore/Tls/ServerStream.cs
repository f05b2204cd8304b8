using System.Net.Security;
using System.Net.Sockets;
using System.Runtime.ExceptionServices;
using System.Security.Authentication;
using KernelTls.AspNetCore.Internals;
using KernelTls.AspNetCore.Transport;
using KernelTls.Handshake;
using KernelTls.Interop;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Represents the TLS stream of an endpoint's connection. A request for the client's certificate waits for its turn
/// among the reads.
/// </summary>
/// <param name="socket">The stream of the socket, which this stream disposes.</param>
/// <param name="endpoint">The endpoint.</param>
/// <param name="connection">The connection.</param>
internal sealed class ServerStream(NetworkStream socket, TlsEndpoint endpoint, DeferredConnection connection)
    : KtlsStream(
        socket,
        leaveInnerStreamOpen: false,
        endpoint.ClientCertificateValidation,
        userCertificateSelectionCallback: null,
        EncryptionPolicy.RequireEncryption,
        endpoint.Options),
    IKtlsFeature
{
    /// <summary>Gets or sets the reader of this stream after the handshake.</summary>
    public TlsInput? Input { get; set; }

    /// <summary>Performs the handshake with the endpoint's options.</summary>
    /// <remarks>
    /// If the options depend on the ClientHello, it is peeked at and left in the socket. Options that only the base class
    /// supports therefore still work, as on any other endpoint.
    /// </remarks>
    /// <param name="tlsFeature">Kestrel's feature of the connection.</param>
    /// <param name="report">The report, which is started when the options are known.</param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    /// <exception cref="AuthenticationException">The handshake failed.</exception>
    /// <exception cref="IOException">The connection failed.</exception>
    public async Task PerformHandshakeAsync(KestrelTlsFeature tlsFeature, HandshakeReport report, CancellationToken cancellationToken)
    {
        byte[] record = endpoint.NeedsClientHello ? await PeekAtClientHelloAsync(cancellationToken).ConfigureAwait(false) : [];
        bool isKnown = ClientHelloParser.TryParse(record, out SslClientHelloInfo hello);
        if (endpoint.HasOptionsCallback && !isKnown)
        {
            // The ClientHello is fragmented or missing. OpenSSL reassembles it, or reports what is wrong.
            await AuthenticateAsServerAsync(
                (_, late, _, token) => CreateOptionsAsync(late, tlsFeature, report, token), state: null, cancellationToken).ConfigureAwait(false);
            return;
        }

        SslServerAuthenticationOptions options;
        try
        {
            if (record.Length > 0)
            {
                endpoint.InvokeClientHelloCallback(connection, record);
            }

            if (isKnown)
            {
                RuntimeInternals.PublishTargetHost(this, hello.ServerName);
            }

            options = await CreateOptionsAsync(hello, tlsFeature, report, cancellationToken).ConfigureAwait(false);
        }
        catch (Exception e) when (isKnown)
        {
            await SendFailureAlertAsync(ExceptionDispatchInfo.Capture(e)).ConfigureAwait(false);
            throw;
        }

        if (tlsFeature.AllowsDelayedCertificate && MayRenegotiate(options, hello.SslProtocols))
        {
            DisableKernelTls(KtlsFallbackReason.DelayedCertificate);
        }

        await AuthenticateAsServerAsync(options, cancellationToken).ConfigureAwait(false);
    }

    public override Task NegotiateClientCertificateAsync(CancellationToken cancellationToken = default) =>
        Input is { } input
            ? input.RunExclusiveAsync(base.NegotiateClientCertificateAsync, cancellationToken)
            : base.NegotiateClientCertificateAsync(cancellationToken);

    /// <summary>
    /// Peeks at the ClientHello. The linked token is needed because an abort disposes the socket, which the wait for
    /// the rest of a ClientHello does not notice.
    /// </summary>
    private async Task<byte[]> PeekAtClientHelloAsync(CancellationToken cancellationToken)
    {
        using CancellationTokenSource either = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken, connection.ConnectionClosed);
        try
        {
            byte[] record = await ClientHelloPeek.ReadAsync(connection.Socket, either.Token).ConfigureAwait(false);
            SkipWaitForFirstRecord();
            return record;
        }
        catch (OperationCanceledException e) when (connection.AbortReason is { } reason)
        {
            throw new IOException(reason.Message, e);
        }
    }

    private async ValueTask<SslServerAuthenticationOptions> CreateOptionsAsync(
        SslClientHelloInfo hello, KestrelTlsFeature tlsFeature, HandshakeReport report, CancellationToken cancellationToken)
    {
        SslServerAuthenticationOptions options = await endpoint.CreateHandshakeOptionsAsync(
            connection, this, tlsFeature, hello, cancellationToken).ConfigureAwait(false);
        report.Started(options);
        return options;
    }

    /// <summary>
    /// Refuses the client with an alert that blames this end, instead of a reset. Does not wait, because the
    /// ClientHello has arrived.
    /// </summary>
    private Task SendFailureAlertAsync(ExceptionDispatchInfo failure) => AuthenticateAsServerAsync(
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
