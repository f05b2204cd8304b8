using KernelTls.Tool.Commands;
using KernelTls.Tool.Output;
using KernelTls.Tool.Readers;

namespace KernelTls.Tool.Serving;

/// <summary>
/// Writes the messages of <c>ktls serve</c>, as text or as JSON objects with a member <c>event</c>. Thread-safe.
/// </summary>
internal sealed class ServeReport(Terminal terminal)
{
    private readonly SortedDictionary<string, long>? _before = KernelCounters.ReadFirst();

    public void Listening(string address, string directory)
    {
        KtlsPlatform platform = KtlsPlatform.Probe();
        if (terminal.IsJson)
        {
            terminal.JsonLine(new { @event = "listening", address, directory, supported = platform.IsSupported, reason = platform.NotSupportedReason });
            return;
        }

        terminal.Line($"serving {directory} at {address}");
        terminal.Line(platform.IsSupported
            ? $"kernel TLS is available here; {TlsStat.Path} before: {KernelCounters.Describe(KernelCounters.Changes(null, _before))}"
            : $"no kernel TLS here, the stock SslStream is used: {Advice.Named(platform.NotSupportedReason)}");
    }

    public void Opened(ServedConnections.Description connection)
    {
        if (terminal.IsJson)
        {
            terminal.JsonLine(new { @event = "opened", connection });
        }
        else
        {
            terminal.Line($"+ {connection.Id} {connection.Client} {Verdict.Name(connection.Protocol)} {connection.CipherSuite} {connection.ApplicationProtocol} {connection.Offload}");
        }
    }

    public void Closed(ServedConnections.Description connection, double seconds, int open)
    {
        SortedDictionary<string, long> counters = KernelCounters.Changes(_before, TlsStat.Read());
        if (terminal.IsJson)
        {
            terminal.JsonLine(new { @event = "closed", id = connection.Id, seconds, open, counters });
        }
        else
        {
            terminal.Line($"- {connection.Id} after {seconds} s, {open} open; kernel since the start: {KernelCounters.Describe(counters)}");
        }
    }

    /// <summary>Reports a connection without a completed handshake.</summary>
    /// <param name="id">Kestrel's identifier of the connection.</param>
    /// <param name="client">The client's address.</param>
    /// <param name="seconds">The duration of the connection.</param>
    /// <param name="why">The reason why the handshake failed, or null if it did not begin.</param>
    public void Failed(string id, string client, double seconds, string? why)
    {
        if (terminal.IsJson)
        {
            terminal.JsonLine(new { @event = "failed", id, client, seconds, why });
        }
        else
        {
            terminal.Line($"! {id} {client} no handshake, closed after {seconds} s{(why is null ? "" : $": {why}")}");
        }
    }

    public void Stopped(int served)
    {
        SortedDictionary<string, long> counters = KernelCounters.Changes(_before, TlsStat.Read());
        if (terminal.IsJson)
        {
            terminal.JsonLine(new { @event = "stopped", connections = served, counters });
        }
        else
        {
            terminal.Line($"stopped after {served} connections; kernel: {KernelCounters.Describe(counters)}");
        }
    }
}
