namespace KernelTls.AspNetCore;

/// <summary>Contains the options that <c>UseKernelTls</c> set for an endpoint.</summary>
internal sealed class EndpointConfiguration(KtlsOptions options)
{
    public KtlsOptions Options => options;

    /// <summary>
    /// Gets or sets a value that indicates whether the endpoint's UseHttps was found when its pipeline was built.
    /// </summary>
    public bool HasHttps { get; set; }
}
