namespace KernelTls.Bench;

/// <summary>The kernel's own count of kernel TLS sockets since its start; all zero without the tls module.</summary>
/// <param name="Send">TlsTxSw: sockets that were given a sending key.</param>
/// <param name="Receive">TlsRxSw: sockets that were given a receiving key.</param>
internal readonly record struct KernelCounters(long Send, long Receive)
{
    public static KernelCounters Read() =>
        TlsStat.Read() is { } values ? new KernelCounters(values.GetValueOrDefault("TlsTxSw"), values.GetValueOrDefault("TlsRxSw")) : default;

    public KernelCounters Since(KernelCounters before) => new(Send - before.Send, Receive - before.Receive);

    public override string ToString() => $"TlsTxSw +{Send}, TlsRxSw +{Receive}";
}
