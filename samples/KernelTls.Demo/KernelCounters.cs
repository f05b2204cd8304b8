namespace KernelTls.Demo;

/// <summary>Contains the kernel's counters of kernel TLS sockets since its start, in this network namespace (/proc/net/tls_stat).</summary>
/// <param name="Send">TlsTxSw: sockets that got a sending key.</param>
/// <param name="Receive">TlsRxSw: sockets that got a receiving key.</param>
/// <param name="DecryptErrors">TlsDecryptError: records that could not be decrypted.</param>
internal readonly record struct KernelCounters(long Send, long Receive, long DecryptErrors)
{
    /// <summary>Gets a value that indicates whether the tls module is missing. All counters are zero then.</summary>
    public bool AreMissing { get; private init; }

    public static KernelCounters Read() => TlsStat.Read() is { } values
        ? new KernelCounters(
            values.GetValueOrDefault("TlsTxSw"), values.GetValueOrDefault("TlsRxSw"), values.GetValueOrDefault("TlsDecryptError"))
        : new KernelCounters { AreMissing = true };

    /// <summary>Returns the counters as text, with their rise since <paramref name="before"/>.</summary>
    public string ToString(KernelCounters before) => AreMissing
        ? ToString()
        : $"TlsTxSw={Send} (+{Send - before.Send}) TlsRxSw={Receive} (+{Receive - before.Receive}) "
            + $"TlsDecryptError={DecryptErrors} (+{DecryptErrors - before.DecryptErrors})";

    public override string ToString() => AreMissing
        ? $"none: there is no {TlsStat.Path}"
        : $"TlsTxSw={Send} TlsRxSw={Receive} TlsDecryptError={DecryptErrors}";
}
