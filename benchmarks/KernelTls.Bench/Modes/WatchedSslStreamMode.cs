using KernelTls.Diagnostics;

namespace KernelTls.Bench.Modes;

/// <summary>
/// Represents the stock stream in a process with a switch set: each handshake is an event to the monitor of stock handshakes.
/// </summary>
internal sealed class WatchedSslStreamMode : SslStreamMode
{
    // Keeps the monitor, as a process does.
    private static readonly StockHandshakeMonitor s_monitor = new(_ => { });

    public WatchedSslStreamMode(BenchCertificates certificates, bool resume)
        : base(certificates, resume) => ArgumentNullException.ThrowIfNull(s_monitor);

    public override string Name => ModeTable.Watched;
}
