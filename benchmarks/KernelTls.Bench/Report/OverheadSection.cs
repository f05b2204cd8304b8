using System.Text;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Report;

/// <summary>Writes the first section of a page: what is left of the stock stream's cost of TLS, and then of the whole row.</summary>
internal sealed class OverheadSection
{
    /// <summary>How much more than OpenSSL on the socket kernel TLS may cost, as a part of the row.</summary>
    private const double MostOverDirect = 0.01;

    private readonly BenchResults _results;
    private readonly Measurement[] _rows;

    public OverheadSection(BenchResults results)
    {
        _results = results;
        _rows =
        [
            .. from row in Row.All
               let kernel = results.Find(row.Name, ModeTable.Kernel)
               where kernel is { Unit: Measurement.Instructions } && !row.IsStart && results.OverheadLeftOf(kernel) is not null
               select kernel,
        ];
    }

    public bool IsEmpty => _rows.Length == 0;

    public string Draw()
    {
        OverheadChart chart = new();
        foreach (Measurement kernel in _rows)
        {
            chart.Add(kernel.Scenario, _results.OverheadLeftOf(kernel)!.Value, LeftOf(kernel, ModeTable.Direct));
        }

        return chart.ToSvg();
    }

    /// <summary>Appends the section, or nothing if there are no rows.</summary>
    /// <param name="page">The page.</param>
    /// <param name="chart">The name of the chart's file.</param>
    public void AppendTo(StringBuilder page, string chart)
    {
        if (IsEmpty)
        {
            return;
        }

        page.Append("\n## What is left of the cost of TLS\n\n");
        page.Append($"![What is left of SslStream's cost above the floor, by row]({chart})\n\n");
        page.Append("The floor of a row is its cost without TLS and, for each byte of payload, bare AES-256-GCM; a file's is an empty response and its share\n");
        page.Append("of a sendfile without TLS. What SslStream costs above it is the cost of TLS. `left` is how much of that remains, `row` the whole row as a\n");
        page.Append("ratio to SslStream. The goals of one end are below, where they are missed.\n");
        MarkdownTable.AppendHead(
            page, "", "SslStream", "floor", "kernel TLS: left", "OpenSSL on the socket: left", "kernel TLS: row", "client alone", "server alone", "goal", "holds");
        foreach (Measurement kernel in _rows)
        {
            Measurement?[] ends = [.. ModeTable.KernelEnds.Select(mode => _results.Find(kernel.Scenario, mode))];
            Goal? goal = Goal.Find(kernel);
            Measurement stock = _results.Find(kernel.Scenario, ModeTable.Stock)!;
            MarkdownTable.AppendLine(
                page,
                [
                    kernel.Scenario,
                    TextTable.Amount(stock.PerOp, stock.Unit),
                    TextTable.Ratio(_results.FloorOf(stock) / stock.PerOp),
                    Percent(_results.OverheadLeftOf(kernel)),
                    Percent(LeftOf(kernel, ModeTable.Direct)),
                    .. ends.Select(row => TextTable.Ratio(row?.Ratio)),
                    goal?.Describe(kernel.Unit) ?? "-",
                    goal is null ? "-" : Goal.DescribeOutcome(goal.Judge(kernel, _results)),
                ]);
        }

        AppendBeaten(page);
    }

    /// <summary>Names the rows in which OpenSSL on the socket costs less.</summary>
    private void AppendBeaten(StringBuilder page)
    {
        string[] beaten =
        [
            .. from kernel in _rows
               let direct = _results.Find(kernel.Scenario, ModeTable.Direct)
               where kernel.Ratio - direct?.Ratio > MostOverDirect
               select TextTable.Text($"{kernel.Scenario} ({kernel.Ratio:F3} and {direct!.Ratio:F3})"),
        ];
        page.Append(beaten.Length == 0
            ? TextTable.Text($"\nIn none of these rows does OpenSSL on the socket cost less than kernel TLS by more than {MostOverDirect} of the row.\n")
            : $"\nOpenSSL on the socket costs less than kernel TLS, both ends, in {string.Join(", ", beaten)}.\n");
    }

    private double? LeftOf(Measurement kernel, string mode) =>
        _results.Find(kernel.Scenario, mode) is { } row ? _results.OverheadLeftOf(row) : null;

    private static string Percent(double? part) => part is { } known ? TextTable.Text($"{known * 100:F0} %") : "-";
}
