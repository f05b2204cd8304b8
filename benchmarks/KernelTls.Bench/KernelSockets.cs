namespace KernelTls.Bench;

/// <summary>
/// Represents the kernel's count of kernel TLS sockets since it booted. All counts are zero if the tls module is not
/// loaded.
/// </summary>
/// <param name="Send">The number of sockets with a sending key (TlsTxSw).</param>
/// <param name="Receive">The number of sockets with a receiving key (TlsRxSw).</param>
internal readonly record struct KernelSockets(long Send, long Receive)
{
    public static KernelSockets Read() =>
        TlsStat.Read() is { } values ? new KernelSockets(values.GetValueOrDefault("TlsTxSw"), values.GetValueOrDefault("TlsRxSw")) : default;

    public KernelSockets Since(KernelSockets before) => new(Send - before.Send, Receive - before.Receive);

    /// <summary>Verifies that the kernel counted this number of sockets, each with a key for each direction.</summary>
    /// <exception cref="BenchFailedException">It counted another number.</exception>
    public void Expect(string mode, int sockets)
    {
        if (this != new KernelSockets(sockets, sockets))
        {
            throw new BenchFailedException($"{mode}: the kernel counts {this} where {sockets} of each were expected");
        }
    }

    public override string ToString() => $"TlsTxSw +{Send}, TlsRxSw +{Receive}";
}
