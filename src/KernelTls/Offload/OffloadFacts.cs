using System.Net.Security;
using System.Security.Authentication;

namespace KernelTls.Offload;

/// <summary>Contains everything that the offload plan depends on, collected after the handshake.</summary>
/// <param name="KernelFallbackReason">None if kernel TLS was requested; otherwise the reason why not.</param>
/// <param name="OpenSsl">The version of the loaded OpenSSL.</param>
/// <param name="Kernel">The capabilities of the kernel.</param>
/// <param name="Protocol">The negotiated version.</param>
/// <param name="CipherSuite">The negotiated suite.</param>
/// <param name="SendSwitched">
/// Whether OpenSSL reports that it installed the sending keys in the kernel (BIO_get_ktls_send).
/// </param>
/// <param name="ReceiveSwitched">
/// Whether OpenSSL reports that it installed the receiving keys in the kernel (BIO_get_ktls_recv).
/// </param>
/// <param name="PeerClosed">Whether the TCP connection is no longer open in both directions.</param>
/// <param name="Asked">The directions for which kernel TLS was requested.</param>
/// <param name="ShortRecords">Whether a maximum fragment length was negotiated.</param>
internal readonly record struct OffloadFacts(
    KtlsFallbackReason KernelFallbackReason,
    Version OpenSsl,
    KernelCapabilities Kernel,
    SslProtocols Protocol,
    TlsCipherSuite CipherSuite,
    bool SendSwitched,
    bool ReceiveSwitched,
    bool PeerClosed = false,
    KtlsDirections Asked = KtlsDirections.Both,
    bool ShortRecords = false);
