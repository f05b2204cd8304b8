using System.Globalization;
using Microsoft.Diagnostics.Tracing;

namespace KernelTls.Tool.Watching;

/// <summary>Counts the events of one process. Thread-safe.</summary>
internal sealed class ProcessEvents(int processId)
{
    private readonly Lock _lock = new();
    private readonly Dictionary<(string Role, string Protocol, string Cipher, string Send, string Receive, string Library), long> _connections = [];
    private readonly SortedDictionary<string, long> _fallbacks = new(StringComparer.Ordinal);
    private readonly Dictionary<(string Reason, string Detail, string Library), long> _fallbackDetails = [];
    private readonly SortedDictionary<string, long> _failures = new(StringComparer.Ordinal);
    private readonly SortedDictionary<string, long> _others = new(StringComparer.Ordinal);
    private readonly SortedDictionary<string, double> _counters = new(StringComparer.Ordinal);
    private readonly TaskCompletionSource _hasStatus = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly List<StatusLine> _status = [];

    /// <summary>Gets a task that completes when the process has told its status. Processes without the library never do.</summary>
    public Task HasStatus => _hasStatus.Task;

    /// <summary>Adds one event of the event source.</summary>
    public void Add(TraceEvent e)
    {
        lock (_lock)
        {
            switch (e.EventName)
            {
                case "HandshakeCompleted":
                    Count(_connections, (
                        Role(e), Text(e, "protocol"), Text(e, "cipherSuite"),
                        Path(Text(e, "send"), Text(e, "sendReason")), Path(Text(e, "receive"), Text(e, "receiveReason")),
                        Text(e, "library")));
                    break;
                case "Fallback":
                    Count(_fallbacks, Text(e, "reason"));
                    Count(_fallbackDetails, (Text(e, "reason"), Text(e, "detail"), Text(e, "library")));
                    break;
                case "HandshakeFailed":
                    Count(_failures, Text(e, "exceptionType"));
                    break;
                case "Status":
                    TakeStatus(e);
                    break;
                case "EventCounters":
                    TakeCounter(e);
                    break;
                default:
                    if (e.ID != (TraceEventID)0xFFFE) // the manifest of the source
                    {
                        Count(_others, e.EventName);
                    }

                    break;
            }
        }
    }

    /// <summary>Returns the counts so far.</summary>
    public Snapshot Take()
    {
        lock (_lock)
        {
            return new Snapshot(
                processId,
                [.. _status],
                [.. _connections.OrderByDescending(c => c.Value).Select(c =>
                    new Connections(c.Key.Role, c.Key.Protocol, c.Key.Cipher, c.Key.Send, c.Key.Receive, c.Key.Library, c.Value))],
                new SortedDictionary<string, long>(_fallbacks, StringComparer.Ordinal),
                [.. _fallbackDetails.OrderByDescending(f => f.Value).Select(f =>
                    new Fallback(f.Key.Reason, f.Key.Detail, f.Key.Library, f.Value))],
                new SortedDictionary<string, long>(_failures, StringComparer.Ordinal),
                new SortedDictionary<string, long>(_others, StringComparer.Ordinal),
                new SortedDictionary<string, double>(_counters, StringComparer.Ordinal));
        }
    }

    private static void Count<T>(IDictionary<T, long> counts, T what)
        where T : notnull => counts[what] = counts.TryGetValue(what, out long before) ? before + 1 : 1;

    private static string Role(TraceEvent e) => e.PayloadByName("isServer") is true ? "server" : "client";

    private static string Text(TraceEvent e, string name) => Convert.ToString(e.PayloadByName(name), CultureInfo.InvariantCulture) ?? "";

    private static string Path(string path, string reason) => reason is "None" or "" ? path : $"{path} ({reason})";

    private void TakeStatus(TraceEvent e)
    {
        if (Text(e, "what") == "end")
        {
            _hasStatus.TrySetResult();
        }
        else if (!_hasStatus.Task.IsCompleted)
        {
            _status.Add(new StatusLine(
                Text(e, "what"), Text(e, "subject"), Text(e, "state"), Text(e, "detail"), Convert.ToInt64(e.PayloadByName("count"), CultureInfo.InvariantCulture)));
        }
    }

    private void TakeCounter(TraceEvent e)
    {
        if (e.PayloadValue(0) is IDictionary<string, object> outer
            && outer.TryGetValue("Payload", out object? inner) && inner is IDictionary<string, object> counter
            && counter.TryGetValue("Name", out object? name) && name is string text
            && (counter.TryGetValue("Mean", out object? value) || counter.TryGetValue("Increment", out value)))
        {
            _counters[text] = Convert.ToDouble(value, CultureInfo.InvariantCulture);
        }
    }

    /// <summary>Contains the number of handshakes with the same result.</summary>
    /// <param name="Role">client or server.</param>
    /// <param name="Protocol">The version.</param>
    /// <param name="CipherSuite">The suite.</param>
    /// <param name="Send">The data path of the sending direction and, if it is not the kernel, the reason.</param>
    /// <param name="Receive">The data path of the receiving direction and, if it is not the kernel, the reason.</param>
    /// <param name="Library">The assembly whose woven code made them, or empty.</param>
    /// <param name="Count">The number of handshakes.</param>
    internal sealed record Connections(string Role, string Protocol, string CipherSuite, string Send, string Receive, string Library, long Count);

    /// <summary>Contains the number of connections that the base class served for the same reason.</summary>
    /// <param name="Reason">The reason.</param>
    /// <param name="Detail">What is in the way, such as the stream below, or empty.</param>
    /// <param name="Library">The assembly whose woven code made them, or empty.</param>
    /// <param name="Count">The number of connections.</param>
    internal sealed record Fallback(string Reason, string Detail, string Library, long Count);

    /// <summary>Contains a line of the status that the process had when the watch began.</summary>
    /// <param name="What">The kind of line: switch, platform, endpoint, connections, fallback or stock.</param>
    /// <param name="Subject">The switch, endpoint or assembly, or empty.</param>
    /// <param name="State">What is on, or the reason why it is not.</param>
    /// <param name="Detail">More about it: the role, the stream, the remedy; or empty.</param>
    /// <param name="Count">The number of connections, or 0 where they are not counted.</param>
    internal sealed record StatusLine(string What, string Subject, string State, string Detail, long Count)
    {
        /// <summary>Returns the line without its kind.</summary>
        public override string ToString() =>
            $"{(Subject.Length == 0 ? "" : $"{Subject}: ")}{(Count == 0 ? "" : $"{Count.ToString(CultureInfo.InvariantCulture)} × ")}{State}{(Detail.Length == 0 ? "" : $"; {Detail}")}";
    }

    /// <summary>Contains the counts at one time.</summary>
    /// <param name="ProcessId">The process.</param>
    /// <param name="Status">What the process had on when the watch began, and what not, and why.</param>
    /// <param name="Handshakes">The handshakes, by result.</param>
    /// <param name="Fallbacks">The connections that the base class served, by reason.</param>
    /// <param name="FallbackDetails">The same connections, by reason, detail and library.</param>
    /// <param name="Failures">The failed handshakes, by exception.</param>
    /// <param name="Others">The other events, by name.</param>
    /// <param name="Counters">The process's event counters, as last reported.</param>
    internal sealed record Snapshot(
        int ProcessId,
        IReadOnlyList<StatusLine> Status,
        IReadOnlyList<Connections> Handshakes,
        IReadOnlyDictionary<string, long> Fallbacks,
        IReadOnlyList<Fallback> FallbackDetails,
        IReadOnlyDictionary<string, long> Failures,
        IReadOnlyDictionary<string, long> Others,
        IReadOnlyDictionary<string, double> Counters);
}
