using KernelTls.Interop;

namespace KernelTls.Offload;

/// <summary>Describes the request to the kernel for one connection.</summary>
/// <param name="FallbackReason">
/// None to request kernel TLS at each key change; otherwise the reason why it is not requested in either direction.
/// </param>
/// <param name="Directions">The requested directions.</param>
internal readonly record struct KernelRequest(KtlsFallbackReason FallbackReason, KtlsDirections Directions)
{
    /// <summary>Gets a request for both directions.</summary>
    public static KernelRequest Both { get; } = new(KtlsFallbackReason.None, KtlsDirections.Both);

    /// <summary>Returns a request for neither direction.</summary>
    public static KernelRequest Nothing(KtlsFallbackReason reason) => new(reason, KtlsDirections.Both);

    /// <summary>Gets the request as flags of an SSL_CTX.</summary>
    public ContextFlags Flags => (FallbackReason, Directions) switch
    {
        (not KtlsFallbackReason.None, _) => ContextFlags.None,
        (_, KtlsDirections.Send) => ContextFlags.EnableKtls | ContextFlags.SendOnly,
        (_, KtlsDirections.Receive) => ContextFlags.EnableKtls | ContextFlags.ReceiveOnly,
        _ => ContextFlags.EnableKtls,
    };
}
