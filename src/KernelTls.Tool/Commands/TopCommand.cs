using System.CommandLine;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using KernelTls.Tool.Output;
using KernelTls.Tool.Peers;
using KernelTls.Tool.Readers;
using KernelTls.Tool.Watching;

namespace KernelTls.Tool.Commands;

/// <summary>
/// Implements <c>ktls top</c>, which shows the changes of the kernel's counters and the events of a process.
/// </summary>
internal static class TopCommand
{
    private static readonly TimeSpan s_standardInterval = TimeSpan.FromSeconds(1);

    public static Command Create()
    {
        Option<int?> process = PeerArguments.Number(
            "--process", "PID", "Also listen to the event source KernelTls of this .NET process, by EventPipe.", n => n > 0, "a number above 0");
        Option<TimeSpan?> interval = PeerArguments.Seconds("--interval", s_standardInterval, "The time between two samples.");
        Option<int?> count = PeerArguments.Number("--count", "NUMBER", "The number of samples. Default: no limit.", n => n > 0, "a number above 0");
        Command command = new(
            "top",
            "Shows the kernel's TLS counters and their rates and, with --process, the handshakes, fallbacks and failures of a process. Ctrl-C ends it.")
        {
            process, interval, count,
        };
        command.SetWork(
            async (arguments, terminal, cancellationToken) =>
            {
                await RunAsync(
                    arguments.GetValue(process), arguments.GetValue(interval) ?? s_standardInterval, arguments.GetValue(count) ?? int.MaxValue, terminal, cancellationToken);
                return ExitCode.Ok;
            },
            interrupted: ExitCode.Ok);
        return command;
    }

    private static async Task RunAsync(int? processId, TimeSpan interval, int count, Terminal terminal, CancellationToken cancellationToken)
    {
        if (processId is null && TlsStat.Read() is null)
        {
            throw new ToolFailedException(
                ExitCode.Failed,
                $"there is nothing to watch: the kernel has no {TlsStat.Path}. {TlsModule.Read("/", KtlsPlatform.KernelRelease).ToDo} Or specify a .NET process: --process PID.");
        }

        await using ProcessWatch? watch = processId is { } id ? await ProcessWatch.StartAsync(id, interval, cancellationToken) : null;
        await new TopView(terminal).ShowAsync(SampleAsync(watch, interval, count, cancellationToken));
    }

    private static async IAsyncEnumerable<TopFrame> SampleAsync(
        ProcessWatch? watch, TimeSpan interval, int count, [EnumeratorCancellation] CancellationToken cancellationToken)
    {
        SortedDictionary<string, long>? before = null;
        long last = 0;
        for (int i = 0; i < count; i++)
        {
            bool ended = watch?.Ended.IsCompleted ?? false;
            SortedDictionary<string, long>? now = TlsStat.Read();
            double seconds = i == 0 ? 0 : Stopwatch.GetElapsedTime(last).TotalSeconds;
            last = Stopwatch.GetTimestamp();
            Dictionary<string, double> rates = i == 0
                ? []
                : KernelCounters.Changes(before, now).ToDictionary(c => c.Key, c => Math.Round(c.Value / seconds, 2));
            yield return new TopFrame(DateTime.UtcNow, Math.Round(seconds, 3), now, rates, watch?.Events.Take(), ended);
            if (ended || StandardOutput.IsAbandoned)
            {
                yield break;
            }

            before = now;
            if (i + 1 < count)
            {
                Task pause = Task.Delay(interval, cancellationToken);
                await (watch is null ? pause : Task.WhenAny(pause, watch.Ended));
                cancellationToken.ThrowIfCancellationRequested();
            }
        }
    }
}
