using KernelTls.Diagnostics;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore;

/// <summary>
/// Logs which woven libraries use kernel TLS and which do not, and the stock streams of a process with kernel TLS switched on: each kind
/// once.
/// </summary>
internal sealed class ProcessReport(ILogger<ProcessReport> logger) : HostedReport
{
    /// <inheritdoc/>
    protected override Task WriteAsync(CancellationToken stopping) =>
        Task.WhenAll(LogConnectionsAsync(stopping), LogFallbacksAsync(stopping), LogStockHandshakesAsync(stopping));

    private async Task LogConnectionsAsync(CancellationToken stopping)
    {
        await foreach (ConnectionKind kind in ProcessStatus.Connections.WatchAsync(stopping).ConfigureAwait(false))
        {
            if (kind.Library.Length != 0)
            {
                logger.WovenLibraryServed(kind.Library, kind.IsServer ? "server" : "client", kind.Protocol, kind.Offload);
            }
        }
    }

    private async Task LogFallbacksAsync(CancellationToken stopping)
    {
        HashSet<(string, string)> logged = [];
        await foreach (FallbackKind kind in ProcessStatus.Fallbacks.WatchAsync(stopping).ConfigureAwait(false))
        {
            if (kind.Stream.Length != 0 && logged.Add((kind.Library, kind.Stream)))
            {
                logger.WovenLibraryStaysStock(kind.Library, KtlsFallbackReason.NotSocketStream, kind.Stream);
            }
        }
    }

    private async Task LogStockHandshakesAsync(CancellationToken stopping)
    {
        await foreach (StockHandshake kind in ProcessStatus.StockHandshakes.WatchAsync(stopping).ConfigureAwait(false))
        {
            logger.StockStreamInUse(kind.Maker, kind.IsServer ? "a client" : kind.TargetHost, kind.Remedy);
        }
    }
}
