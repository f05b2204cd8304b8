using System.Globalization;

namespace KernelTls.Bench;

/// <summary>The kernel's own count of kernel TLS sockets since its start (/proc/net/tls_stat); all zero without the tls module.</summary>
/// <param name="Send">TlsTxSw: sockets that were given a sending key.</param>
/// <param name="Receive">TlsRxSw: sockets that were given a receiving key.</param>
internal readonly record struct KernelCounters(long Send, long Receive)
{
    private const string Path = "/proc/net/tls_stat";

    public static KernelCounters Read()
    {
        if (!File.Exists(Path))
        {
            return default;
        }

        Dictionary<string, long> values = File.ReadLines(Path)
            .Select(line => line.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries))
            .Where(fields => fields.Length == 2)
            .ToDictionary(fields => fields[0], fields => long.Parse(fields[1], CultureInfo.InvariantCulture));
        return new KernelCounters(values.GetValueOrDefault("TlsTxSw"), values.GetValueOrDefault("TlsRxSw"));
    }

    public KernelCounters Since(KernelCounters before) => new(Send - before.Send, Receive - before.Receive);

    public override string ToString() => $"TlsTxSw +{Send}, TlsRxSw +{Receive}";
}
