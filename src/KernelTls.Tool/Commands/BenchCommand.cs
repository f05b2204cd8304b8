using System.CommandLine;
using System.Globalization;
using KernelTls.Offload;
using KernelTls.Tool.Benching;
using KernelTls.Tool.Output;
using KernelTls.Tool.Peers;
using KernelTls.Tool.Readers;
using Spectre.Console;

namespace KernelTls.Tool.Commands;

/// <summary>Implements <c>ktls bench</c>, a quick comparison on this machine.</summary>
internal static class BenchCommand
{
    private static readonly TimeSpan s_standardTime = TimeSpan.FromSeconds(1);

    public static Command Create()
    {
        Option<string[]> rows = new("--row")
        {
            Description = $"Only these of {string.Join(", ", BenchRow.Names)}. Default: all.",
            HelpName = "NAME",
            AllowMultipleArgumentsPerToken = true,
        };
        rows.Validators.Add(result =>
        {
            foreach (string name in result.Tokens.Select(t => t.Value).Where(n => !BenchRow.Names.Contains(n)))
            {
                result.AddError($"--row '{name}': expected {string.Join(", ", BenchRow.Names)}.");
            }
        });
        Option<TimeSpan?> time = PeerArguments.Seconds("--seconds", s_standardTime, "The time to measure each row in each mode, after a warm-up of the same time.");
        Command command = new(
            "bench",
            "Compares KtlsStream with the stock SslStream over loopback, TLS 1.3, both ends in this process: elapsed time and processor time per operation.")
        {
            rows, time,
        };
        command.SetWork(async (arguments, terminal, cancellationToken) =>
        {
            string[] chosen = arguments.GetValue(rows) is { Length: > 0 } some ? [.. some.Distinct()] : [.. BenchRow.Names];
            await RunAsync(chosen, arguments.GetValue(time) ?? s_standardTime, terminal, cancellationToken);
            return ExitCode.Ok;
        });
        return command;
    }

    private static async Task RunAsync(string[] rows, TimeSpan time, Terminal terminal, CancellationToken cancellationToken)
    {
        EngineChoice choice = KtlsStream.ChooseEngine(BenchPair.Options(BenchMode.Kernel));
        KtlsFallbackReason fallbackReason = choice.KernelReason;
        if (choice.Engine == Engine.Managed && KtlsStream.ChooseEngine(BenchPair.Options(BenchMode.OpenSsl)) is { Engine: Engine.Managed, Reason: var why })
        {
            throw new ToolFailedException(
                ExitCode.Failed, $"there is nothing to compare with the stock SslStream: neither kernel TLS nor OpenSSL on the socket is possible here. {Advice.Named(why == KtlsFallbackReason.DisabledByMode ? fallbackReason : why)}");
        }

        BenchMode[] modes = [BenchMode.SslStream, fallbackReason == KtlsFallbackReason.None ? BenchMode.Kernel : BenchMode.OpenSsl];
        string[] notes = [.. Notes(fallbackReason)];
        if (!terminal.IsJson)
        {
            foreach (string note in notes)
            {
                terminal.Headline(note, new Style(Color.Yellow));
            }
        }

        List<Comparison.Measurement> results = [];
        await ShowProgressAsync(terminal, rows.Length * modes.Length, async done =>
        {
            using Comparison comparison = new();
            foreach (string row in rows)
            {
                foreach (BenchMode mode in modes)
                {
                    done($"{row}, {mode}");
                    results.Add(await comparison.MeasureAsync(row, mode, time, cancellationToken));
                }
            }
        });
        if (terminal.IsJson)
        {
            terminal.Document(new { kernelTls = fallbackReason == KtlsFallbackReason.None, reason = fallbackReason, emulated = Machine.IsEmulated, notes, rows = results });
        }
        else
        {
            Show(results, modes[1], terminal);
        }
    }

    private static IEnumerable<string> Notes(KtlsFallbackReason fallbackReason)
    {
        if (fallbackReason != KtlsFallbackReason.None)
        {
            yield return $"No kernel TLS here, so this compares OpenSSL on the socket (no kernel TLS!) with the stock SslStream. {Advice.Named(fallbackReason)}";
        }

        if (Machine.Caveat(Machine.Hypervisor) is { } caveat)
        {
            yield return caveat;
        }
    }

    /// <summary>Shows a progress bar on a terminal, and lines on standard error otherwise.</summary>
    private static async Task ShowProgressAsync(Terminal terminal, int steps, Func<Action<string>, Task> work)
    {
        if (terminal.IsPlain || terminal.IsJson)
        {
            int step = 0;
            await work(name => terminal.ErrorLine($"[{++step}/{steps}] {name}"));
            return;
        }

        await terminal.Text.Progress().AutoClear(true).StartAsync(async progress =>
        {
            ProgressTask task = progress.AddTask("measuring", maxValue: steps);
            int step = 0;
            await work(name =>
            {
                task.Description = Markup.Escape(name);
                task.Value = step++;
            });
        });
    }

    private static void Show(List<Comparison.Measurement> results, BenchMode other, Terminal terminal)
    {
        terminal.Table(
            ["row", "SslStream: time", "processor", $"{other}: time", "processor", "time ratio", "processor ratio", "an operation is"],
            from row in results.GroupBy(r => r.Row)
            let stock = row.Single(r => r.Mode == BenchMode.SslStream)
            let ours = row.Single(r => r.Mode == other)
            select (string[])
            [
                row.Key,
                Micro(stock.WallMicroseconds), Micro(stock.ProcessorMicroseconds),
                Micro(ours.WallMicroseconds), Micro(ours.ProcessorMicroseconds),
                Ratio(ours.WallMicroseconds, stock.WallMicroseconds), Ratio(ours.ProcessorMicroseconds, stock.ProcessorMicroseconds),
                stock.Operation,
            ]);
        string[] offloads = [.. results.Where(r => r.Mode == other).Select(r => r.Offload).Distinct()];
        terminal.Line($"Server's side of {other}: {string.Join("; ", offloads)}. Below 1: {other} is cheaper. Times are for both ends together.");
    }

    private static string Micro(double value) => string.Create(CultureInfo.InvariantCulture, $"{value:0.0} µs");

    private static string Ratio(double ours, double stock) =>
        stock > 0 ? (ours / stock).ToString("0.00", CultureInfo.InvariantCulture) : "?";
}
