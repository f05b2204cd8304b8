namespace KernelTls.AspNetCore.Tls;

/// <summary>What this package adds to Kestrel's own features.</summary>
internal sealed class KtlsFeature(KtlsStream stream) : IKtlsFeature
{
    public KtlsOffload Offload => stream.Offload;
}
