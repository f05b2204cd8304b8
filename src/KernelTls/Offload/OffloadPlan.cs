using System.Net.Security;
using System.Security.Authentication;

namespace KernelTls.Offload;

/// <summary>Decides from the facts alone which data path each direction uses and why. Has no side effects.</summary>
internal static class OffloadPlan
{
    private static readonly Version s_fullTls13 = new(3, 2);

    public static KtlsOffload Decide(in OffloadFacts facts)
    {
        KtlsFallbackReason send = GetReason(facts, KtlsDirections.Send, facts.SendSwitched);
        KtlsFallbackReason receive = GetReason(facts, KtlsDirections.Receive, facts.ReceiveSwitched);
        return new KtlsOffload(GetPath(send), send, GetPath(receive), receive);
    }

    /// <summary>
    /// Returns the reason why one direction of such a connection would not be in the kernel, or
    /// <see cref="KtlsFallbackReason.None"/>.
    /// </summary>
    public static KtlsFallbackReason PredictFallback(
        KtlsDirections direction, SslProtocols protocol, TlsCipherSuite suite, Version openSsl, KernelCapabilities kernel)
    {
        if (protocol is not (SslProtocols.Tls12 or SslProtocols.Tls13))
        {
            return KtlsFallbackReason.ProtocolNotOffloadable;
        }

        CipherKind cipher = CipherKinds.Of(suite);
        if (cipher == CipherKind.None)
        {
            return KtlsFallbackReason.CipherNotOffloadable;
        }

        // Before 3.2, OpenSSL does not install the receiving keys of TLS 1.3, nor those of its CCM suites in either
        // direction.
        if (protocol == SslProtocols.Tls13 && openSsl < s_fullTls13
            && (direction == KtlsDirections.Receive || cipher == CipherKind.Aes128Ccm))
        {
            return KtlsFallbackReason.OpenSslTooOld;
        }

        return kernel.GetFallbackReason(direction, protocol, cipher);
    }

    private static KtlsDataPath GetPath(KtlsFallbackReason reason) =>
        reason == KtlsFallbackReason.None ? KtlsDataPath.Kernel : KtlsDataPath.OpenSsl;

    private static KtlsFallbackReason GetReason(in OffloadFacts facts, KtlsDirections direction, bool switched)
    {
        if (switched)
        {
            return KtlsFallbackReason.None;
        }

        if (facts.KernelFallbackReason != KtlsFallbackReason.None)
        {
            return facts.KernelFallbackReason;
        }

        if ((facts.Asked & direction) == 0)
        {
            return KtlsFallbackReason.DirectionNotRequested;
        }

        KtlsFallbackReason foreseen =
            PredictFallback(direction, facts.Protocol, facts.CipherSuite, facts.OpenSsl, facts.Kernel);
        return foreseen != KtlsFallbackReason.None ? foreseen
            : facts.ShortRecords ? KtlsFallbackReason.MaxFragmentLength
            : facts.PeerClosed ? KtlsFallbackReason.PeerClosed
            : KtlsFallbackReason.KernelRefused;
    }
}
