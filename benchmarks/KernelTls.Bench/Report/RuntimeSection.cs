using System.Text;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Report;

/// <summary>
/// Writes the section that compares several runtimes. The figures of each runtime are ratios to its stock stream.
/// </summary>
internal sealed class RuntimeSection
{
    private static readonly string[] s_modes = [ModeTable.Kernel, ModeTable.KernelWithoutPadding, ModeTable.KernelClient, ModeTable.KernelServer];

    private readonly BenchResults[] _runtimes;

    public RuntimeSection(params BenchResults[] runtimes) => _runtimes = runtimes;

    /// <summary>Appends the section, or nothing if there is only one runtime.</summary>
    public void AppendTo(StringBuilder page)
    {
        if (_runtimes.Length < 2)
        {
            return;
        }

        page.Append($"\n## {string.Join(" and ", _runtimes.Select(results => results.Runtime))}\n\n");
        page.Append("Each ratio is to the stock stack of the same runtime in the same boot. `stock` is SslStream, or nginx on kernel TLS where a server\n");
        page.Append("alone is measured, or the library as published where it is a library's client.");
        foreach (BenchResults results in _runtimes[1..])
        {
            string name = ResultReport.NameOf(results);
            page.Append($" [{name}.md]({name}.md) has every figure of {results.Runtime}.");
        }

        page.Append('\n');
        MarkdownTable.AppendHead(page, ["row", "mode", .. _runtimes.SelectMany(Head)]);
        foreach (Row row in Row.All)
        {
            foreach (string mode in s_modes.Where(mode => _runtimes.Any(results => results.Find(row.Name, mode) is not null)))
            {
                MarkdownTable.AppendLine(page, [row.Name, mode, .. _runtimes.SelectMany(results => Describe(results, row, mode))]);
            }
        }
    }

    private static string[] Head(BenchResults results) => [$"{results.RuntimeMajor}: stock", "", "ratio", "goal"];

    private static string[] Describe(BenchResults results, Row row, string mode)
    {
        if (results.Find(row.Name, mode) is not { } measured)
        {
            return ["-", "-", "-", "-"];
        }

        Goal? goal = Goal.Find(measured);
        return
        [
            results.Find(row.Name, row.Reference) is { } stock ? TextTable.Amount(stock.PerOp, stock.Unit) : "-",
            TextTable.Amount(measured.PerOp, measured.Unit),
            TextTable.Ratio(measured.Ratio),
            goal is null ? "-" : $"{goal.Describe(measured.Unit)}: {Goal.DescribeOutcome(goal.Judge(measured, results))}",
        ];
    }
}
