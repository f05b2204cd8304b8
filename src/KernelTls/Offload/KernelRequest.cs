using KernelTls.Interop;

namespace KernelTls.Offload;

/// <summary>What is asked of the kernel on one connection.</summary>
/// <param name="WhyNot">None: the kernel is asked at each key change. Otherwise why it is not, in either direction.</param>
/// <param name="Directions">The directions it is asked for.</param>
internal readonly record struct KernelRequest(KtlsFallbackReason WhyNot, KtlsDirections Directions)
{
    /// <summary>Both directions.</summary>
    public static KernelRequest Both { get; } = new(KtlsFallbackReason.None, KtlsDirections.Both);

    /// <summary>Nothing is asked.</summary>
    public static KernelRequest Nothing(KtlsFallbackReason reason) => new(reason, KtlsDirections.Both);

    /// <summary>The request, as an SSL_CTX is told.</summary>
    public ContextFlags Flags => (WhyNot, Directions) switch
    {
        (not KtlsFallbackReason.None, _) => ContextFlags.None,
        (_, KtlsDirections.Send) => ContextFlags.EnableKtls | ContextFlags.SendOnly,
        (_, KtlsDirections.Receive) => ContextFlags.EnableKtls | ContextFlags.ReceiveOnly,
        _ => ContextFlags.EnableKtls,
    };
}
