namespace KernelTls.AspNetCore;

/// <summary>What <c>UseKernelTls</c> on an endpoint has set.</summary>
internal sealed class EndpointChoice(KtlsOptions options)
{
    public KtlsOptions Options => options;

    /// <summary>The endpoint's UseHttps was found when its pipeline was built.</summary>
    public bool HasHttps { get; set; }
}
