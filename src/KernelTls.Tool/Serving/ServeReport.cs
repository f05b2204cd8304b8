using KernelTls.Offload;
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
    private readonly TaskCompletionSource<ToolFailedException> _failure = new(TaskCreationOptions.RunContinuationsAsynchronously);

    /// <summary>Gets a task that completes with the failure when something cannot be reported.</summary>
    public Task<ToolFailedException> Failure => _failure.Task;

    public void Listening(string address, string directory)
    {
        EngineChoice choice = KtlsStream.ChooseEngine(new KtlsOptions { Mode = KtlsMode.Preferred });
        bool supported = choice.Engine == Engine.Kernel;
        if (terminal.IsJson)
        {
            JsonLine(new { @event = "listening", address, directory, supported, reason = choice.KernelReason });
            return;
        }

        string instead = choice.Engine == Engine.DirectOpenSsl ? "OpenSSL on the socket" : "the stock SslStream";
        Line($"serving {directory} at {address}");
        Line(supported
            ? $"kernel TLS is available here; {TlsStat.Path} before: {KernelCounters.Describe(KernelCounters.Changes(null, _before))}"
            : $"no kernel TLS here, {instead} is used: {Advice.Named(choice.KernelReason)}");
    }

    public void Opened(ServedConnections.Description connection)
    {
        if (terminal.IsJson)
        {
            JsonLine(new { @event = "opened", connection });
        }
        else
        {
            Line($"+ {connection.Id} {connection.Client} {Verdict.Name(connection.Protocol)} {connection.CipherSuite} {connection.ApplicationProtocol} {connection.Offload}");
        }
    }

    public void Closed(ServedConnections.Description connection, double seconds, int open)
    {
        SortedDictionary<string, long> counters = KernelCounters.Changes(_before, TlsStat.Read());
        if (terminal.IsJson)
        {
            JsonLine(new { @event = "closed", id = connection.Id, seconds, open, counters });
        }
        else
        {
            Line($"- {connection.Id} after {seconds} s, {open} open; kernel since the start: {KernelCounters.Describe(counters)}");
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
            JsonLine(new { @event = "failed", id, client, seconds, why });
        }
        else
        {
            Line($"! {id} {client} no handshake, closed after {seconds} s{(why is null ? "" : $": {why}")}");
        }
    }

    public void Stopped(int served)
    {
        SortedDictionary<string, long> counters = KernelCounters.Changes(_before, TlsStat.Read());
        if (terminal.IsJson)
        {
            JsonLine(new { @event = "stopped", connections = served, counters });
        }
        else
        {
            Line($"stopped after {served} connections; kernel: {KernelCounters.Describe(counters)}");
        }
    }

    private void Line(string text) => Try(() => terminal.Line(text));

    private void JsonLine(object report) => Try(() => terminal.JsonLine(report));

    /// <summary>Writes, also for connections, which go on if that fails: <see cref="Failure"/> ends the command.</summary>
    private void Try(Action write)
    {
        try
        {
            write();
        }
        catch (ToolFailedException e)
        {
            _failure.TrySetResult(e);
        }
    }
}
