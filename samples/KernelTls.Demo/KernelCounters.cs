namespace KernelTls.Demo;

/// <summary>The kernel's own count of kernel TLS sockets since its start, in this network namespace (/proc/net/tls_stat).</summary>
/// <param name="Send">TlsTxSw: sockets that were given a sending key.</param>
/// <param name="Receive">TlsRxSw: sockets that were given a receiving key.</param>
/// <param name="DecryptErrors">TlsDecryptError: records that did not decrypt.</param>
internal readonly record struct KernelCounters(long Send, long Receive, long DecryptErrors)
{
    /// <summary>The kernel has no tls module loaded, hence no counters, all zero here.</summary>
    public bool AreMissing { get; private init; }

    public static KernelCounters Read() => TlsStat.Read() is { } values
        ? new KernelCounters(
            values.GetValueOrDefault("TlsTxSw"), values.GetValueOrDefault("TlsRxSw"), values.GetValueOrDefault("TlsDecryptError"))
        : new KernelCounters { AreMissing = true };

    /// <summary>These after, the others before.</summary>
    public string ToString(KernelCounters before) => AreMissing
        ? ToString()
        : $"TlsTxSw={Send} (+{Send - before.Send}) TlsRxSw={Receive} (+{Receive - before.Receive}) "
            + $"TlsDecryptError={DecryptErrors} (+{DecryptErrors - before.DecryptErrors})";

    public override string ToString() => AreMissing
        ? $"none: there is no {TlsStat.Path}"
        : $"TlsTxSw={Send} TlsRxSw={Receive} TlsDecryptError={DecryptErrors}";
}
