using System.Net.Security;
using System.Net.Sockets;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Represents the TLS stream of an endpoint's connection. A request for the client's certificate waits for its turn
/// among the reads.
/// </summary>
/// <param name="socket">The stream of the socket, which this stream owns.</param>
/// <param name="clientValidation">
/// The callback that validates the client's certificate, or null if the handshake's options contain it.
/// </param>
/// <param name="options">The kernel TLS options of the connection.</param>
internal sealed class ServerStream(
    NetworkStream socket, RemoteCertificateValidationCallback? clientValidation, KtlsOptions options)
    : KtlsStream(
        socket,
        leaveInnerStreamOpen: false,
        clientValidation,
        userCertificateSelectionCallback: null,
        EncryptionPolicy.RequireEncryption,
        options)
{
    /// <summary>Gets or sets the reader of this stream after the handshake.</summary>
    public TlsInput? Input { get; set; }

    public override Task NegotiateClientCertificateAsync(CancellationToken cancellationToken = default) =>
        Input is { } input
            ? input.RunAloneAsync(base.NegotiateClientCertificateAsync, cancellationToken)
            : base.NegotiateClientCertificateAsync(cancellationToken);
}
