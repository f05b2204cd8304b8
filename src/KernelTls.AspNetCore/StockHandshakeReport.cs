using KernelTls.Diagnostics;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore;

/// <summary>Logs once per process that a stock SslStream is in use although kernel TLS is switched on.</summary>
internal sealed class StockHandshakeReport(ILogger<StockHandshakeReport> logger) : HostedReport
{
    /// <inheritdoc/>
    protected override async Task WriteAsync(CancellationToken stopping)
    {
        StockHandshake handshake = await StockHandshakeMonitor.First.WaitAsync(stopping).ConfigureAwait(false);
        logger.StockStreamInUse(
            handshake.Assembly.Length != 0 ? handshake.Assembly : "An assembly",
            handshake.IsServer ? "a client" : handshake.TargetHost,
            StockHandshakeMonitor.Advice(handshake));
    }
}
