using KernelTls.Diagnostics;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore;

/// <summary>Logs the streams that keep woven libraries from kernel TLS, each once.</summary>
internal sealed class WovenFallbackReport(ILogger<WovenFallbackReport> logger) : HostedReport
{
    /// <inheritdoc/>
    protected override async Task WriteAsync(CancellationToken stopping)
    {
        await foreach (WovenFallback fallback in WovenFallbacks.WatchAsync(stopping).ConfigureAwait(false))
        {
            logger.WovenLibraryStaysStock(fallback.Library, KtlsFallbackReason.NotSocketStream, fallback.Stream);
        }
    }
}
