using System.Net.Security;
using System.Net.Sockets;

namespace KernelTls.AspNetCore.Tls;

/// <summary>The TLS stream of an endpoint's connection, which a request that asks for its client's certificate reads from in its turn.</summary>
/// <param name="socket">Owned.</param>
/// <param name="clientValidation">Judges the client's certificate; null where the options of the handshake say how.</param>
/// <param name="options">How the connection uses the kernel.</param>
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
    /// <summary>Who reads otherwise, once there has been a handshake.</summary>
    public TlsInput? Input { get; set; }

    public override Task NegotiateClientCertificateAsync(CancellationToken cancellationToken = default) =>
        Input is { } input
            ? input.RunAloneAsync(base.NegotiateClientCertificateAsync, cancellationToken)
            : base.NegotiateClientCertificateAsync(cancellationToken);
}
