using System.Globalization;

namespace KernelTls.Bench.Report;

/// <summary>Writes the results as a table, including the goals and whether they hold.</summary>
internal sealed class ResultTable
{
    private readonly BenchResults _results;

    public ResultTable(BenchResults results) => _results = results;

    /// <summary>Writes the table and returns whether every measured goal holds.</summary>
    public bool Write(TextWriter output)
    {
        TextTable table = new(
            ["scenario", "mode", "per operation", "spread", "ratio", "to", "over floor", "allocated", "goal", "holds"], 2, 3, 4, 6, 7);
        bool allHold = true;
        foreach (Measurement row in _results.Rows)
        {
            Goal? goal = Goal.Find(row);
            string? missed = goal?.Judge(row, _results);
            allHold &= string.IsNullOrEmpty(missed);
            table.Add(
                row.Scenario,
                row.Mode,
                TextTable.Amount(row.PerOp, row.Unit),
                TextTable.Percent(row.Spread),
                TextTable.Ratio(row.Ratio),
                row.RatioTo ?? "-",
                _results.FloorOf(row) is { } floor ? TextTable.Amount(row.PerOp - floor, row.Unit) : "-",
                row.AllocatedPerOp is { } bytes ? TextTable.Text($"{bytes:N0} B") : "-",
                goal?.Describe(row.Unit) ?? "",
                Goal.DescribeOutcome(missed));
        }

        output.WriteLine();
        output.WriteLine(_results.Surroundings);
        table.Write(output);
        output.WriteLine();
        LoadTable.Write(_results, output);
        foreach (string gap in _results.Gaps)
        {
            output.WriteLine(gap);
        }

        output.WriteLine("Instructions in thousands (k), user and kernel, of both ends; of server rows, of the server's process alone; of library");
        output.WriteLine("rows, of the client's.");
        output.WriteLine("The ratio is to the mode named beside it, in the same boot. The floor is plain and, for each byte of payload, bare");
        output.WriteLine($"AES-256-GCM ({_results.CryptoPerByte?.ToString(CultureInfo.InvariantCulture) ?? "not measured, no"} instructions to encrypt and decrypt).");
        return allHold;
    }

    public static string Describe(Measurement row) => $"{TextTable.Amount(row.PerOp, row.Unit)}, spread {TextTable.Percent(row.Spread)}"
        + (row.WarmUpRounds is { } rounds ? TextTable.Text($", settled after {rounds} rounds") : "")
        + (row.CompiledMethods is { } methods ? TextTable.Text($", {methods:N0} methods compiled") : "")
        + (row.Resident is { } resident ? TextTable.Text($", of which {resident:N0} B in the process and {row.Kernel:N0} B in the kernel") : "");
}
