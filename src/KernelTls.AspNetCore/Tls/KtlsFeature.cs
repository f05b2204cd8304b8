namespace KernelTls.AspNetCore.Tls;

/// <summary>Implements the feature that this package adds to Kestrel's own.</summary>
internal sealed class KtlsFeature(KtlsStream stream) : IKtlsFeature
{
    public KtlsOffload Offload => stream.Offload;
}
