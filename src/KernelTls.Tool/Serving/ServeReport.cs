using KernelTls.Tool.Commands;
using KernelTls.Tool.Output;
using KernelTls.Tool.Readers;

namespace KernelTls.Tool.Serving;

/// <summary>What <c>ktls serve</c> says: lines for people, or JSON objects with a member <c>event</c>. Thread-safe.</summary>
internal sealed class ServeReport(Terminal terminal)
{
    private readonly SortedDictionary<string, long>? _before = KernelCounters.ReadFirst();

    public void Listening(string address, string directory)
    {
        if (terminal.IsJson)
        {
            terminal.JsonLine(new { @event = "listening", address, directory, supported = KtlsPlatform.IsSupported, reason = KtlsPlatform.NotSupportedReason });
            return;
        }

        terminal.Line($"serving {directory} at {address}");
        terminal.Line(KtlsPlatform.IsSupported
            ? $"kernel TLS can be had here; {TlsStat.Path} before: {KernelCounters.Describe(KernelCounters.Changes(null, _before))}"
            : $"no kernel TLS here, the stock TLS serves: {Advice.Named(KtlsPlatform.NotSupportedReason)}");
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

    /// <summary>A connection that came to no handshake.</summary>
    /// <param name="id">Kestrel's.</param>
    /// <param name="client">Where it came from.</param>
    /// <param name="seconds">How long it lasted.</param>
    /// <param name="why">What the handshake failed of; null: it was not begun.</param>
    public void Failed(string id, string client, double seconds, string? why)
    {
        if (terminal.IsJson)
        {
            terminal.JsonLine(new { @event = "failed", id, client, seconds, why });
        }
        else
        {
            terminal.Line($"! {id} {client} no handshake, and the end after {seconds} s{(why is null ? "" : $": {why}")}");
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
