using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Handshake;
using KernelTls.Interop;

namespace KernelTls.IO;

// The client's certificate after the handshake (RFC 8446, section 4.6.2): a server requests it, a client selects it.
internal sealed partial class TlsSession
{
    // SSL_R_EXTENSION_NOT_RECEIVED: the ClientHello did not offer post-handshake authentication.
    private const int ExtensionNotReceived = 279;

    private const string CannotRequest = "Requesting the client's certificate failed";

    private bool _isUnwilling;

    /// <summary>
    /// Requests the certificate, waits for the answer and validates it as in the handshake. Nothing else is sent until
    /// then, and the data that precedes the answer is kept for later reads.
    /// </summary>
    /// <remarks>If the wait is canceled, the connection cannot be used any more.</remarks>
    /// <param name="stream">The stream to pass to callbacks.</param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    public async Task RequestCertificateAsync(object stream, CancellationToken cancellationToken)
    {
        if (!Settings.IsServer)
        {
            throw new InvalidOperationException("Only a server can request a client certificate.");
        }

        if (RemoteCertificate is not null)
        {
            throw new InvalidOperationException("The client has already sent its certificate.");
        }

        PeerVerifier verifier = new(stream, Settings with { PeerCertificateRequired = true }, static () => { });
        await Receiver.RunExclusiveAsync(() => Sender.RunExclusiveAsync(
            () => RequestCertificateAsync(verifier, cancellationToken), cancellationToken)).ConfigureAwait(false);
    }

    /// <summary>
    /// Client: selects the certificate for the first request of the server. It also answers all later ones.
    /// </summary>
    private void SelectCertificate(ClientCertificateSelector selector)
    {
        Sender.SelectCertificate = null;
        if (selector.Select(RemoteCertificate, _connection.GetAcceptableIssuers()) is { } certificate)
        {
            _connection.UseCertificate(certificate);
            _lateCertificate = certificate.TargetCertificate;
        }
    }

    private async Task RequestCertificateAsync(PeerVerifier verifier, CancellationToken cancellationToken)
    {
        for (int refusals = 0; ;)
        {
            if (!_connection.TryRequestCertificate(verifier, out NativeResult result))
            {
                throw new NotSupportedException(
                    $"A client certificate cannot be requested after a {Protocol} handshake on this connection ({Offload}): "
                    + "kernel TLS does not support renegotiation. Set ClientCertificateRequired, or use KtlsMode.Disabled for "
                    + "such endpoints.");
            }

            Receiver.CountMessages(result);
            switch (result.Status)
            {
                case NativeStatus.Ok:
                    Accept(verifier);
                    return;
                case NativeStatus.WantRead when result.MayHaveAnotherMessage:
                    break;
                case NativeStatus.WantRead:
                    try
                    {
                        await _socketReceiver.WaitReadableAsync(cancellationToken).ConfigureAwait(false);
                    }
                    catch (SocketException e)
                    {
                        _connection.WaitFailed(_socketReceiver, CannotRequest, e);
                    }

                    break;
                case NativeStatus.WantWrite:
                    refusals = await SocketReadiness.WaitForRoomAsync(
                        _socketReceiver.Socket, refusals, cancellationToken).ConfigureAwait(false);
                    break;
                case NativeStatus.DataWaiting when Receiver.TryHoldData():
                    break;
                case NativeStatus.DataWaiting:
                    throw new InvalidOperationException(
                        $"The client sent more than {ReceiveBuffer.Capacity} bytes before its certificate. Read that data, "
                        + "then negotiate again.");
                case NativeStatus.TlsError when result.Reason == ExtensionNotReceived
                    && RuntimeBehavior.CompletesWithoutOffer && !_isUnwilling:
                    _isUnwilling = true;
                    return;
                case NativeStatus.TlsError when result.Reason == ExtensionNotReceived:
                    throw new InvalidOperationException(
                        "The client did not offer post-handshake authentication (post_handshake_auth, RFC 8446, section 4.2.6).");
                default:
                    verifier.Refusal?.Throw();
                    throw TlsErrors.Handshake(result);
            }
        }
    }

    private void Accept(PeerVerifier verifier)
    {
        if (verifier.Certificate is null)
        {
            verifier.ValidateAbsence();
            verifier.Refusal?.Throw();
        }

        RemoteCertificate = verifier.Certificate;
    }
}
