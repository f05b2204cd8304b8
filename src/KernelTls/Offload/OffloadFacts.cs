using System.Net.Security;
using System.Security.Authentication;

namespace KernelTls.Offload;

/// <summary>Everything the offload plan depends on, gathered after the handshake.</summary>
/// <param name="WhyNotKernel">None: the kernel was asked for. Otherwise why it was not.</param>
/// <param name="OpenSsl">Version of the loaded OpenSSL.</param>
/// <param name="Kernel">What the kernel takes.</param>
/// <param name="Protocol">Negotiated version.</param>
/// <param name="CipherSuite">Negotiated suite.</param>
/// <param name="SendSwitched">OpenSSL says that it gave the sending keys to the kernel (BIO_get_ktls_send).</param>
/// <param name="ReceiveSwitched">OpenSSL says that it gave the receiving keys to the kernel (BIO_get_ktls_recv).</param>
/// <param name="PeerClosed">The TCP connection is not open both ways any more.</param>
/// <param name="Asked">The directions that the kernel was asked for, where it was.</param>
/// <param name="ShortRecords">A maximum fragment length was negotiated.</param>
internal readonly record struct OffloadFacts(
    KtlsFallbackReason WhyNotKernel,
    Version OpenSsl,
    KernelAbilities Kernel,
    SslProtocols Protocol,
    TlsCipherSuite CipherSuite,
    bool SendSwitched,
    bool ReceiveSwitched,
    bool PeerClosed = false,
    KtlsDirections Asked = KtlsDirections.Both,
    bool ShortRecords = false);
