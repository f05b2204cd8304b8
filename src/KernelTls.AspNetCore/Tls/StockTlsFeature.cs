namespace KernelTls.AspNetCore.Tls;

/// <summary>Implements the feature of connections that use the default TLS. Its offload contains the reason.</summary>
internal sealed class StockTlsFeature(KtlsFallbackReason reason) : IKtlsFeature
{
    public KtlsOffload Offload { get; } = KtlsOffload.Managed(reason);
}
