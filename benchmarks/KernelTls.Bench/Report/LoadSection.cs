using System.Text;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Report;

/// <summary>Writes the section about load.</summary>
internal sealed class LoadSection
{
    private static readonly string[] s_modes =
        [ModeTable.Floor, ModeTable.Direct, ModeTable.Kernel, ModeTable.KernelClient, ModeTable.KernelServer];

    private const string PerOperation = "per operation";

    private static readonly string[] s_goals = [.. ModeTable.KernelEnds.Select(mode => $"{mode}: goal")];

    private readonly BenchResults _results;
    private readonly Row[] _rows;

    public LoadSection(BenchResults results)
    {
        _results = results;
        _rows = [.. Row.All.Where(row => row.IsLoad && results.Rows.Any(other => other.Scenario == row.Name))];
    }

    public void AppendTo(StringBuilder page)
    {
        if (_rows.Length == 0)
        {
            return;
        }

        page.Append("\n## A hundred at a time, as a ratio to SslStream\n\n");
        page.Append("One HttpClient has 100 requests under way at Kestrel, HTTP/2 on one connection; `c1000-idle` is memory for each end of a thousand\n");
        page.Append("connections of which ten work. `c200-storm` opens 200 connections at once, and its times are those of a client that was connected\n");
        page.Append("before. `plain` says how near https has come to http.\n");
        AppendRatios(page, PerOperation, row => TextTable.Amount(row.PerOp, row.Unit), row => row.Ratio);
        page.Append("\nWhat 99 of 100 requests took at most, by the guest's clock: instructions of all that ran meanwhile.\n");
        AppendRatios(
            page, "p99", row => row.Load is { } load ? TextTable.Amount(load.Percentile99, Measurement.Instructions) : "-", row => row.Load?.Percentile99Ratio);
        page.Append("\nTCP segments with data per request, both directions.\n");
        AppendRatios(page, "segments", row => TextTable.Count(row.Load?.Segments), row => row.Load?.SegmentsRatio);
        AppendAll(page);
    }

    private void AppendRatios(StringBuilder page, string what, Func<Measurement, string> amount, Func<Measurement, double?> ratio)
    {
        bool isFirst = what == PerOperation;
        MarkdownTable.AppendHead(page, [what, "SslStream", .. s_modes, .. isFirst ? s_goals : []]);
        foreach (Row row in _rows)
        {
            if (_results.Find(row.Name, ModeTable.Stock) is { } stock && (row.MeasureMemory is null || isFirst))
            {
                MarkdownTable.AppendLine(
                    page,
                    [
                        row.Name,
                        amount(stock),
                        .. s_modes.Select(mode => TextTable.Ratio(_results.Find(row.Name, mode) is { } one ? ratio(one) : null)),
                        .. isFirst ? ModeTable.KernelEnds.Select(mode => DescribeGoal(row.Name, mode)) : [],
                    ]);
            }
        }
    }

    private string DescribeGoal(string scenario, string mode) => _results.Find(scenario, mode) is { } row && Goal.Find(row) is { } goal
        ? $"{goal.Describe(row.Unit)}: {Goal.DescribeOutcome(goal.Judge(row, _results))}"
        : "-";

    private void AppendAll(StringBuilder page)
    {
        page.Append("\nEvery figure of load; system calls and TLS records are per request, of both ends.\n");
        MarkdownTable.AppendHead(page, "row", "mode", "p50", "p99", "p99 ratio", "system calls", "segments", "ratio", "records", "resumed");
        foreach (Measurement row in _results.Rows)
        {
            if (row.Load is { } load)
            {
                MarkdownTable.AppendLine(page, [row.Scenario, row.Mode, .. LoadTable.Describe(load)]);
            }
        }
    }
}
