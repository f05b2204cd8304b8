using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Handshake;
using KernelTls.Interop;

namespace KernelTls.IO;

// A server that asks its client for a certificate after the handshake (RFC 8446, section 4.6.2).
internal sealed partial class TlsSession
{
    // SSL_R_EXTENSION_NOT_RECEIVED: the client did not say in its hello that it may be asked.
    private const int ExtensionNotReceived = 279;

    /// <summary>Asks, waits for the answer and judges it as in the handshake. Nothing else is read or sent meanwhile.</summary>
    /// <param name="stream">The stream, as callbacks see it.</param>
    /// <param name="cancellationToken">Ends the wait; the connection is of no use afterwards.</param>
    public async Task RequestCertificateAsync(object stream, CancellationToken cancellationToken)
    {
        if (!Settings.IsServer)
        {
            throw new InvalidOperationException("Only a server can ask for a client certificate.");
        }

        if (RemoteCertificate is not null)
        {
            throw new InvalidOperationException("The client has shown its certificate already.");
        }

        PeerVerifier verifier = new(stream, Settings with { PeerCertificateRequired = true }, static () => { });
        await Receiver.RunAloneAsync(() => Sender.RunAloneAsync(
            () => RequestCertificateAsync(verifier, cancellationToken), cancellationToken)).ConfigureAwait(false);
    }

    private async Task RequestCertificateAsync(PeerVerifier verifier, CancellationToken cancellationToken)
    {
        while (true)
        {
            if (!_connection.TryRequestCertificate(verifier, out NativeResult result))
            {
                throw new NotSupportedException(
                    $"A client certificate cannot be asked for after a {Protocol} handshake on this connection ({Offload}): kernel "
                    + "TLS has no renegotiation. Set ClientCertificateRequired, or use KtlsMode.Disabled for such endpoints.");
            }

            switch (result.Status)
            {
                case NativeStatus.Ok:
                    Accept(verifier);
                    return;
                case NativeStatus.WantRead:
                    Check(await _socketReceiver.ReceiveAsync(Memory<byte>.Empty, cancellationToken).ConfigureAwait(false));
                    break;
                case NativeStatus.WantWrite:
                    await Readiness.WaitToWriteAsync(_connection.Socket, cancellationToken).ConfigureAwait(false);
                    break;
                case NativeStatus.DataWaiting:
                    throw new InvalidOperationException(
                        "The client sent data before its certificate: read that data, then negotiate again.");
                case NativeStatus.TlsError when result.Reason == ExtensionNotReceived:
                    throw new InvalidOperationException(
                        "The client did not offer to be asked for a certificate after the handshake (post_handshake_auth, RFC 8446, section 4.2.6).");
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
            verifier.JudgeAbsence();
            verifier.Refusal?.Throw();
        }

        RemoteCertificate = verifier.Certificate;
    }

    private void Check(SocketOutcome outcome)
    {
        if (outcome.RecordErrno != 0)
        {
            _connection.ReceiveFailed(outcome.RecordErrno);
        }
        else if (outcome.Error != SocketError.Success)
        {
            throw TlsErrors.Socket("Asking for the client's certificate failed", outcome.Error);
        }
    }
}
