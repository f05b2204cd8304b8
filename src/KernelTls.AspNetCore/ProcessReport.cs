using KernelTls.Diagnostics;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore;

/// <summary>
/// Logs which woven libraries use kernel TLS and which do not, and the stock streams of a process with kernel TLS
/// switched on: each kind once.
/// </summary>
/// <remarks>
/// It is not a <see cref="BackgroundService"/>. A host whose start fails takes a canceled service for one that failed.
/// It would log it as critical beside the real error.
/// </remarks>
internal sealed class ProcessReport(ILogger<ProcessReport> logger) : IHostedService, IDisposable
{
    private readonly CancellationTokenSource _stopping = new();
    private Task _written = Task.CompletedTask;

    public Task StartAsync(CancellationToken cancellationToken)
    {
        _written = WriteUntilStoppedAsync();
        return Task.CompletedTask;
    }

    public async Task StopAsync(CancellationToken cancellationToken)
    {
        await _stopping.CancelAsync().ConfigureAwait(false);
        await _written.ConfigureAwait(false);
    }

    public void Dispose() => _stopping.Cancel();

    private async Task WriteUntilStoppedAsync()
    {
        CancellationToken stopping = _stopping.Token;
        try
        {
            await Task.WhenAll(
                LogConnectionsAsync(stopping), LogFallbacksAsync(stopping), LogStockHandshakesAsync(stopping)).ConfigureAwait(false);
        }
        catch (OperationCanceledException) when (stopping.IsCancellationRequested)
        {
        }
    }

    private async Task LogConnectionsAsync(CancellationToken stopping)
    {
        await foreach (ConnectionKind kind in ProcessStatus.Connections.WatchAsync(stopping).ConfigureAwait(false))
        {
            if (kind.Library.Length != 0)
            {
                string role = kind.IsServer ? "server" : "client";
                logger.WovenLibraryServed(kind.Library, role, kind.Protocol, kind.Offload);
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
