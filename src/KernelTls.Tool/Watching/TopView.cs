using System.Globalization;
using KernelTls.Tool.Output;
using Spectre.Console;
using Spectre.Console.Rendering;

namespace KernelTls.Tool.Watching;

/// <summary>Shows samples: each replaces the previous one on a terminal, and follows it in redirected output.</summary>
internal sealed class TopView(Terminal terminal)
{
    private int _statusLines;

    /// <summary>Shows the samples.</summary>
    /// <param name="frames">The samples, up to the last one.</param>
    public async Task ShowAsync(IAsyncEnumerable<TopFrame> frames)
    {
        if (terminal.IsJson)
        {
            await foreach (TopFrame frame in frames)
            {
                terminal.JsonLine(frame);
            }
        }
        else if (terminal.IsPlain)
        {
            await foreach (TopFrame frame in frames)
            {
                ShowLines(frame);
            }
        }
        else
        {
            await terminal.Text.Live(new Text("…")).StartAsync(async screen =>
            {
                await foreach (TopFrame frame in frames)
                {
                    screen.UpdateTarget(Draw(frame));
                }
            });
        }
    }

    private void ShowLines(TopFrame frame)
    {
        string time = frame.Time.ToString("HH:mm:ss", CultureInfo.InvariantCulture);
        terminal.Line($"{time} kernel: {(frame.Counters is null ? "no counters, no tls module" : frame.Seconds == 0 ? Join(frame.Counters) : frame.PerSecond.Count == 0 ? "nothing changed" : Join(frame.PerSecond, "/s"))}");
        if (frame.Process is not { } process)
        {
            return;
        }

        foreach (ProcessEvents.StatusLine line in process.Status.Skip(_statusLines))
        {
            terminal.Line($"{time} process {process.ProcessId}: before: {line.What}: {line}");
        }

        _statusLines = process.Status.Count;
        foreach (ProcessEvents.Connections c in process.Handshakes)
        {
            terminal.Line($"{time} process {process.ProcessId}: {c.Count} {c.Role} {c.Protocol} {c.CipherSuite} send={c.Send} receive={c.Receive}{(c.Library.Length == 0 ? "" : $" library={c.Library}")}");
        }

        foreach ((string name, string values) in Sections(process))
        {
            terminal.Line($"{time} process {process.ProcessId}: {name} {values}");
        }

        if (frame.Ended)
        {
            terminal.Line($"{time} process {process.ProcessId} has ended");
        }
    }

    private Rows Draw(TopFrame frame)
    {
        List<IRenderable> parts = [new Text(frame.Counters is null
            ? "The kernel has no counters: no tls module."
            : $"Kernel TLS of this machine or container, {frame.Time:HH:mm:ss} UTC; Ctrl-C ends.")];
        if (frame.Counters is not null)
        {
            parts.Add(terminal.NewTable(
                ["counter", "value", "per second"],
                frame.Counters.Select(c => (string[])[c.Key, Number(c.Value), frame.PerSecond.TryGetValue(c.Key, out double rate) ? Number(rate) : ""])));
        }

        if (frame.Process is { } process)
        {
            if (process.Status.Count > 0)
            {
                parts.Add(new Text($"Process {process.ProcessId} before the watch began"));
                parts.AddRange(process.Status.Select(l => new Text(Terminal.Harmless($"{l.What}: {l}"))));
            }

            parts.Add(new Text($"Process {process.ProcessId}{(frame.Ended ? ", which has ended" : "")}: handshakes since the watch began"));
            parts.Add(terminal.NewTable(
                ["count", "role", "version", "cipher suite", "send", "receive", "library"],
                process.Handshakes.Select(c => (string[])[Number(c.Count), c.Role, c.Protocol, c.CipherSuite, c.Send, c.Receive, c.Library])));
            parts.AddRange(Sections(process).Select(s => new Text(Terminal.Harmless($"{s.Name}: {s.Values}"))));
        }

        return new Rows(parts);
    }

    private static IEnumerable<(string Name, string Values)> Sections(ProcessEvents.Snapshot process)
    {
        if (process.Fallbacks.Count > 0)
        {
            yield return ("fallbacks", Join(process.Fallbacks));
        }

        foreach (ProcessEvents.Fallback f in process.FallbackDetails.Where(f => f.Detail.Length != 0 || f.Library.Length != 0))
        {
            yield return ("fallback", $"{f.Reason}={Number(f.Count)}{(f.Library.Length == 0 ? "" : $" library={f.Library}")} {f.Detail}");
        }

        if (process.Failures.Count > 0)
        {
            yield return ("failures", Join(process.Failures));
        }

        if (process.Others.Count > 0)
        {
            yield return ("events", Join(process.Others));
        }

        if (process.Counters.Count > 0)
        {
            yield return ("counters", Join(process.Counters));
        }
    }

    private static string Join<T>(IEnumerable<KeyValuePair<string, T>> values, string unit = "")
        where T : IFormattable => string.Join(' ', values.Select(v => $"{v.Key}={Number(v.Value)}{unit}"));

    private static string Number(IFormattable value) => value.ToString(value is double ? "0.##" : null, CultureInfo.InvariantCulture);
}
