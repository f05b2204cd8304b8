using KernelTls.Diagnostics;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore;

/// <summary>Logs the streams that keep woven libraries from kernel TLS, each once.</summary>
internal sealed class WovenFallbackReport(ILogger<WovenFallbackReport> logger) : BackgroundService
{
    /// <inheritdoc/>
    protected override async Task ExecuteAsync(CancellationToken stoppingToken)
    {
        try
        {
            await foreach (WovenFallback fallback in WovenFallbacks.WatchAsync(stoppingToken).ConfigureAwait(false))
            {
                logger.WovenLibraryStaysStock(fallback.Library, KtlsFallbackReason.NotSocketStream, fallback.Stream);
            }
        }
        catch (OperationCanceledException) when (stoppingToken.IsCancellationRequested)
        {
        }
    }
}
