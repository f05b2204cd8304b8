namespace KernelTls.Bench.Report;

/// <summary>Formats the figures of load rows other than instructions as text.</summary>
internal static class LoadTable
{
    private static readonly string[] s_head =
        ["scenario", "mode", "p50", "p99", "p99 ratio", "system calls", "segments", "ratio", "records", "resumed"];

    /// <summary>Writes the table, or nothing if there are no load rows.</summary>
    public static void Write(BenchResults results, TextWriter output)
    {
        if (!results.Rows.Any(row => row.Load is not null))
        {
            return;
        }

        TextTable table = new(s_head, 2, 3, 4, 5, 6, 7, 8, 9);
        foreach (Measurement row in results.Rows)
        {
            if (row.Load is { } load)
            {
                table.Add([row.Scenario, row.Mode, .. Describe(load)]);
            }
        }

        output.WriteLine("Under load, p50 and p99 in instructions of all that ran meanwhile; system calls, TCP segments with data and TLS");
        output.WriteLine("records per operation, both ends:");
        table.Write(output);
        output.WriteLine();
    }

    /// <summary>Returns the figures in the order of the headings.</summary>
    public static string[] Describe(LoadFigures load) =>
    [
        TextTable.Amount(load.Median, Measurement.Instructions),
        TextTable.Amount(load.Percentile99, Measurement.Instructions),
        TextTable.Ratio(load.Percentile99Ratio),
        TextTable.Count(load.SystemCalls),
        TextTable.Count(load.Segments),
        TextTable.Ratio(load.SegmentsRatio),
        TextTable.Count(load.Records),
        load.Resumed is { } part ? TextTable.Percent(part) : "-",
    ];
}
