using System.Globalization;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Report;

/// <summary>The results as a table, with the goals and whether they hold.</summary>
internal sealed class ResultTable
{
    private const int ToColumn = 5;

    private static readonly string[] s_head =
        ["scenario", "mode", "per operation", "spread", "ratio", "to", "over floor", "allocated", "goal", "holds"];

    private readonly BenchResults _results;

    public ResultTable(BenchResults results) => _results = results;

    /// <summary>Whether every goal that was measured holds.</summary>
    public bool Write(TextWriter output)
    {
        output.WriteLine();
        output.WriteLine($"{_results.Cell}: Linux {_results.Kernel}, {_results.OpenSsl}, {_results.Runtime}");
        List<string[]> lines = [s_head];
        bool allHold = true;
        foreach (Measurement row in _results.Rows)
        {
            Goal? goal = Goal.All.FirstOrDefault(goal => goal.Scenario == row.Scenario && goal.Mode == row.Mode);
            string? missed = goal?.Judge(row, _results.Rows);
            allHold &= string.IsNullOrEmpty(missed);
            lines.Add(
            [
                row.Scenario,
                row.Mode,
                Amount(row.PerOp, row.Unit),
                Text($"{row.Spread * 100:F1} %"),
                row.Ratio is { } ratio ? Text($"{ratio:F3}") : "-",
                row.RatioTo ?? "-",
                Floor(row) is { } floor ? Amount(row.PerOp - floor, row.Unit) : "-",
                row.AllocatedPerOp is { } bytes ? Text($"{bytes:N0} B") : "-",
                Wanted(goal, row.Unit),
                goal is null || missed is null ? "-" : missed.Length == 0 ? "yes" : $"NO: {missed}",
            ]);
        }

        WriteAligned(lines, output);
        output.WriteLine();
        output.WriteLine("Instructions in thousands (k), user and kernel, of both ends; of static-server rows, of the server's process alone.");
        output.WriteLine("The ratio is to the mode named beside it, in the same boot. The floor is plain and, for each byte of payload, bare");
        output.WriteLine($"AES-256-GCM ({_results.CryptoPerByte?.ToString(CultureInfo.InvariantCulture) ?? "not measured, no"} instructions to encrypt and decrypt).");
        return allHold;
    }

    public static string Describe(Measurement row) => Text($"{Amount(row.PerOp, row.Unit)}, spread {row.Spread * 100:F1} %")
        + (row.Resident is { } resident ? Text($", of which {resident:N0} B in the process and {row.Kernel:N0} B in the kernel") : "");

    private double? Floor(Measurement row)
    {
        if (row.Mode == ModeTable.Floor ||
            _results.Rows.FirstOrDefault(other => other.Scenario == row.Scenario && other.Mode == ModeTable.Floor) is not { } plain)
        {
            return null;
        }

        double crypto = row.Unit == Measurement.Instructions ? Row.Find(row.Scenario).Payload * (_results.CryptoPerByte ?? 0) : 0;
        return plain.PerOp + crypto;
    }

    private static string Wanted(Goal? goal, string unit) => string.Join(
        ", ",
        new[]
        {
            goal?.Ratio is { } ratio ? Text($"<= {ratio:F2}") : null,
            goal?.PerOp is { } perOp ? $"<= {Amount(perOp, unit)}" : null,
            goal?.Below is { } mode ? $"< {mode}" : null,
            goal?.AllocatedPerOp is { } bytes ? Text($"{bytes:N0} B") : null,
        }.Where(part => part is not null));

    private static string Amount(double amount, string unit) =>
        unit == Measurement.Instructions ? Text($"{amount / 1000:N1} k") : Text($"{amount:N0} B");

    private static string Text(FormattableString text) => text.ToString(CultureInfo.InvariantCulture);

    private static void WriteAligned(List<string[]> lines, TextWriter output)
    {
        int[] widths = [.. Enumerable.Range(0, s_head.Length).Select(column => lines.Max(line => line[column].Length))];
        string previous = "";
        foreach (string[] line in lines)
        {
            if (line[0] != previous)
            {
                output.WriteLine();
                previous = line[0];
            }

            // Names to the left, figures to the right.
            output.WriteLine(string.Join("  ", line.Select((text, column) => column is < 2 or ToColumn or > 7
                ? text.PadRight(widths[column])
                : text.PadLeft(widths[column]))).TrimEnd());
        }
    }
}
