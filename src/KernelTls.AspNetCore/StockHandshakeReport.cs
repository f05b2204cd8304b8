using KernelTls.Diagnostics;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore;

/// <summary>Logs once per process that a stock SslStream is in use although kernel TLS is switched on.</summary>
internal sealed class StockHandshakeReport(ILogger<StockHandshakeReport> logger) : BackgroundService
{
    /// <inheritdoc/>
    protected override async Task ExecuteAsync(CancellationToken stoppingToken)
    {
        StockHandshake handshake = await StockHandshakeMonitor.First.WaitAsync(stoppingToken).ConfigureAwait(false);
        logger.StockStreamInUse(
            handshake.Assembly.Length != 0 ? handshake.Assembly : "An assembly",
            handshake.IsServer ? "a client" : handshake.TargetHost,
            StockHandshakeMonitor.Advice(handshake));
    }
}
