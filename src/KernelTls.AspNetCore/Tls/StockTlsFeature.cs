namespace KernelTls.AspNetCore.Tls;

/// <summary>Implements the feature of connections that use the default TLS. Its offload contains the reason.</summary>
internal sealed class StockTlsFeature(KtlsOffload offload) : IKtlsFeature
{
    public KtlsOffload Offload => offload;
}
