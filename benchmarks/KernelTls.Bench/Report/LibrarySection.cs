using System.Text;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Report;

/// <summary>Writes the section about libraries.</summary>
internal sealed class LibrarySection
{
    private static readonly string[] s_woven = [.. ModeTable.Libraries.Where(mode => mode != ModeTable.Unwoven)];

    private readonly BenchResults _results;
    private readonly Row[] _rows;

    public LibrarySection(BenchResults results)
    {
        _results = results;
        _rows = [.. Row.All.Where(row => row.IsLibrary && results.Rows.Any(other => other.Scenario == row.Name))];
    }

    /// <summary>Appends the section, or nothing if no library was measured.</summary>
    public void AppendTo(StringBuilder page)
    {
        if (_rows.Length == 0)
        {
            return;
        }

        page.Append("\n## Libraries: the client's process alone\n\n");
        page.Append("`unwoven` is the library as it is published, on SslStream. Woven by KernelTls.Weave it is `sslstream` while kernel TLS is off, and\n");
        page.Append("`ktls` with it, `ktls-nopad` with it and with ExpectNoPadding. The servers are PostgreSQL and Redis of the distribution, without kernel TLS.\n");
        MarkdownTable.AppendHead(page, ["", .. ModeTable.Libraries, .. s_woven.SelectMany(mode => (string[])[$"{mode} / {ModeTable.Unwoven}", "goal", "holds"])]);
        foreach (Row row in _rows)
        {
            MarkdownTable.AppendLine(
                page,
                [
                    row.Name,
                    .. ModeTable.Libraries.Select(mode => _results.Find(row.Name, mode) is { } one ? TextTable.Amount(one.PerOp, one.Unit) : "-"),
                    .. s_woven.SelectMany(mode => Judge(_results.Find(row.Name, mode))),
                ]);
        }
    }

    private string[] Judge(Measurement? measured) => measured is not null && Goal.Find(measured) is { } goal
        ? [TextTable.Ratio(measured.Ratio), goal.Describe(measured.Unit), Goal.DescribeOutcome(goal.Judge(measured, _results))]
        : [TextTable.Ratio(measured?.Ratio), "-", "-"];
}
