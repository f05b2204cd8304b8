using KernelTls.Diagnostics;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore;

/// <summary>
/// Logs which woven libraries use kernel TLS and which do not, and the stock streams of a process with kernel TLS switched on: each kind
/// once.
/// </summary>
internal sealed class ProcessReport(ILogger<ProcessReport> logger) : BackgroundService
{
    /// <inheritdoc/>
    protected override async Task ExecuteAsync(CancellationToken stoppingToken)
    {
        // The tasks end by cancellation, at the end of the host, also of one whose start has failed. That is no failure of this service.
        await Task.WhenAll(LogConnectionsAsync(stoppingToken), LogFallbacksAsync(stoppingToken), LogStockHandshakesAsync(stoppingToken))
            .ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
    }

    private async Task LogConnectionsAsync(CancellationToken stoppingToken)
    {
        await foreach (ConnectionKind kind in ProcessStatus.Connections.WatchAsync(stoppingToken).ConfigureAwait(false))
        {
            if (kind.Library.Length != 0)
            {
                logger.WovenLibraryServed(kind.Library, kind.IsServer ? "server" : "client", kind.Protocol, kind.Offload);
            }
        }
    }

    private async Task LogFallbacksAsync(CancellationToken stoppingToken)
    {
        HashSet<(string, string)> logged = [];
        await foreach (FallbackKind kind in ProcessStatus.Fallbacks.WatchAsync(stoppingToken).ConfigureAwait(false))
        {
            if (kind.Stream.Length != 0 && logged.Add((kind.Library, kind.Stream)))
            {
                logger.WovenLibraryStaysStock(kind.Library, KtlsFallbackReason.NotSocketStream, kind.Stream);
            }
        }
    }

    private async Task LogStockHandshakesAsync(CancellationToken stoppingToken)
    {
        await foreach (StockHandshake kind in ProcessStatus.StockHandshakes.WatchAsync(stoppingToken).ConfigureAwait(false))
        {
            logger.StockStreamInUse(kind.Maker, kind.IsServer ? "a client" : kind.TargetHost, kind.Remedy);
        }
    }
}
