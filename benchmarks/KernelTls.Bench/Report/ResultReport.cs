using System.Text;
using System.Text.Json;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Report;

/// <summary>
/// Writes the results as pages for readers: Markdown, charts and the data. The pages depend only on the results. The
/// results of a second runtime have a separate page and a section on the first page.
/// </summary>
internal sealed class ResultReport
{
    public const string Page = "README.md";
    public const string OverheadChart = "overhead.svg";
    public const string ServerChart = "servers.svg";
    public const string Data = "results.json";

    /// <summary>The page that explains why goals are missed. It is the only handwritten page.</summary>
    public const string Reasons = "misses.md";

    private const string Kernel = ModeTable.Kernel;

    private static readonly string[] s_compared = [ModeTable.Direct, Kernel, ModeTable.KernelWithoutPadding, ModeTable.KernelClient, ModeTable.KernelServer];

    private readonly BenchResults _results;
    private readonly BenchResults[] _others;
    private readonly string? _name;
    private readonly OverheadSection _overhead;
    private readonly Row[] _connectionRows;
    private readonly Row[] _serverRows;

    /// <param name="results">The results for the page.</param>
    /// <param name="others">The results of other runtimes, each with a separate page.</param>
    public ResultReport(BenchResults results, params BenchResults[] others)
        : this(results, name: null, others)
    {
        if (others.Prepend(results).DistinctBy(NameOf).Count() <= others.Length)
        {
            throw new BenchFailedException("of the results that a report is to have side by side, two are of the same runtime");
        }
    }

    private ResultReport(BenchResults results, string? name, BenchResults[] others)
    {
        _results = results;
        _name = name;
        _others = others;
        _overhead = new OverheadSection(results);
        Row[] measured = [.. Row.All.Where(row => results.Rows.Any(other => other.Scenario == row.Name))];
        _connectionRows = [.. measured.Where(row => row.Reference == ModeTable.Stock && !row.IsLoad)];
        _serverRows = [.. measured.Where(row => row.Reference == ModeTable.NginxKernel)];
    }

    /// <summary>Returns the prefix of the file names of a second runtime.</summary>
    public static string NameOf(BenchResults results) => $"net{results.RuntimeMajor}";

    public void WriteTo(string directory)
    {
        Directory.CreateDirectory(directory);
        File.WriteAllText(Path.Combine(directory, _name is null ? Page : $"{_name}.md"), ToMarkdown(directory));
        WriteOrDelete(Path.Combine(directory, FileOf(OverheadChart)), _overhead.IsEmpty ? null : _overhead.Draw());
        WriteOrDelete(Path.Combine(directory, FileOf(ServerChart)), _serverRows.Length > 0 ? DrawServers() : null);
        _results.WriteTo(Path.Combine(directory, FileOf(Data)));
        foreach (BenchResults other in _others)
        {
            new ResultReport(other, NameOf(other), others: []).WriteTo(directory);
        }
    }

    private string FileOf(string name) => _name is null ? name : $"{_name}-{name}";

    /// <param name="directory">The directory that may contain <see cref="Reasons"/>.</param>
    private string ToMarkdown(string directory)
    {
        StringBuilder page = new();
        page.Append($"# What TLS costs, in instructions{(_name is null ? "" : $": {_results.Runtime}")}\n\n");
        page.Append($"Measured in the cell {_results.Surroundings}.\n");
        AppendCommands(page);
        page.Append("Instructions, user and kernel, in an emulated machine: [benchmarking.md](../benchmarking.md) says how they are\n");
        page.Append("counted and what keeps them honest. They say what work is done, not how fast a processor does it.\n");
        _overhead.AppendTo(page, FileOf(OverheadChart));
        AppendGoals(page, directory);
        new RuntimeSection([_results, .. _others]).AppendTo(page);
        AppendRatios(page);
        new LoadSection(_results).AppendTo(page);
        AppendServers(page);
        new LibrarySection(_results).AppendTo(page);
        AppendPublished(page);
        AppendAll(page);
        return page.ToString();
    }

    private void AppendCommands(StringBuilder page)
    {
        string data = FileOf(Data);
        page.Append($"This page is written by a command, from [{data}]({data}); to measure, write it again, or see what has changed since:\n\n");
        page.Append("```\n");
        foreach (BenchResults results in (BenchResults[])[_results, .. _others])
        {
            page.Append($"eng/bench --runtime {results.RuntimeMajor} --json {NameOf(results)}.json\n");
        }

        page.Append($"eng/bench --report {string.Join(' ', _others.Prepend(_results).Select(results => $"{NameOf(results)}.json"))}\n");
        page.Append($"eng/bench --compare docs/results/{data} {NameOf(_results)}.json\n```\n\n");
    }

    private void AppendGoals(StringBuilder page, string directory)
    {
        List<(Measurement Row, Goal Goal, string Missed)> judged = [];
        foreach (Measurement row in _results.Rows)
        {
            if (Goal.Find(row) is { } goal && goal.Judge(row, _results) is { } missed)
            {
                judged.Add((row, goal, missed));
            }
        }

        (Measurement Row, Goal Goal, string Missed)[] failed = [.. judged.Where(one => one.Missed.Length > 0)];
        page.Append($"\n## Goals\n\n{judged.Count - failed.Length} of {judged.Count} goals that were measured hold; there are {Goal.All.Count} goals.\n");
        string[] gaps = [.. _results.Gaps];
        if (gaps.Length > 0)
        {
            page.Append($"\n- {string.Join("\n- ", gaps)}\n");
        }

        if (failed.Length == 0)
        {
            return;
        }

        page.Append("\nThe floor is that of the goal's column, as a ratio to SslStream: the row's floor, and at one end also what only the other end can save.\n");
        page.Append($"`eng/bench --runtime {_results.RuntimeMajor} --profile stream-pingpong-64/ktls` shows where the instructions of a row go.\n");
        if (File.Exists(Path.Combine(directory, Reasons)))
        {
            page.Append($"[{Reasons}]({Reasons}) says what the misses come down to.\n");
        }

        MarkdownTable.AppendHead(page, "missed by", "goal", "measured", "", "floor");
        foreach ((Measurement row, Goal goal, string missed) in failed)
        {
            MarkdownTable.AppendLine(
                page,
                $"{row.Scenario}, {row.Mode}",
                goal.Describe(row.Unit),
                $"{TextTable.Amount(row.PerOp, row.Unit)}, ratio {TextTable.Ratio(row.Ratio)}{(_results.OverheadLeftOf(row) is { } left && goal.OverheadLeft is not null ? TextTable.Text($", {left:F2} left") : "")}",
                missed,
                TextTable.Ratio(_results.FloorRatioOf(row)));
        }
    }

    private void AppendRatios(StringBuilder page)
    {
        if (_connectionRows.Length == 0)
        {
            return;
        }

        page.Append("\n## Both ends, as a ratio to SslStream\n\n");
        page.Append("`direct` is OpenSSL on the socket without the kernel, `ktls-client` and `ktls-server` have kernel TLS at\n");
        page.Append("one end and SslStream at the other.\n");
        string[] compared = _results.Rows.Any(row => row.Mode == ModeTable.TlsSession) ? [.. s_compared, ModeTable.TlsSession] : s_compared;
        if (compared != s_compared)
        {
            page.Append("`tlssession` is the runtime's own OpenSSL on the socket, TlsSocketSession, at both ends.\n");
        }

        page.Append("`poc` is the data path of the closed proof of concept, as it was measured before its code was removed from the benchmark.\n");
        MarkdownTable.AppendHead(page, ["", "SslStream", "floor", "poc", .. compared]);
        foreach (Row row in _connectionRows)
        {
            Measurement? stock = _results.Find(row.Name, ModeTable.Stock);
            MarkdownTable.AppendLine(
                page,
                [
                    row.Name,
                    stock is null ? "-" : TextTable.Amount(stock.PerOp, stock.Unit),
                    TextTable.Ratio(FloorRatio(row)),
                    TextTable.Ratio(PublishedReport.ProofOfConcept.RatioOf(row.Name, _results.RuntimeMajor)),
                    .. compared.Select(mode => TextTable.Ratio(_results.Find(row.Name, mode)?.Ratio)),
                ]);
        }
    }

    private void AppendServers(StringBuilder page)
    {
        if (_serverRows.Length == 0)
        {
            return;
        }

        page.Append("\n## Servers: the server's process alone\n\n");
        page.Append($"![Instructions of the server's process by file size, as a ratio to nginx on kernel TLS]({FileOf(ServerChart)})\n\n");
        page.Append($"curl downloads a file again and again on one connection. `nginx-ktls` ({_results.Nginx}) has kernel TLS and sendfile; `sslstream` and\n");
        page.Append("`ktls` are Kestrel with `Results.File`. As a reverse proxy, Kestrel copies what HttpClient gets from an nginx without TLS.\n");
        MarkdownTable.AppendHead(page, ["", .. ModeTable.Servers, .. ModeTable.Servers.Skip(1).Select(mode => $"{mode} / {ModeTable.NginxKernel}"), "goal", "holds"]);
        foreach (Row row in _serverRows)
        {
            Measurement? kernel = _results.Find(row.Name, Kernel);
            Goal? goal = kernel is null ? null : Goal.Find(kernel);
            MarkdownTable.AppendLine(
                page,
                [
                    row.Name,
                    .. ModeTable.Servers.Select(mode => _results.Find(row.Name, mode) is { } one ? TextTable.Amount(one.PerOp, one.Unit) : "-"),
                    .. ModeTable.Servers.Skip(1).Select(mode => TextTable.Ratio(_results.Find(row.Name, mode)?.Ratio)),
                    goal?.Describe(kernel!.Unit) ?? "-",
                    goal is null ? "-" : Goal.DescribeOutcome(goal.Judge(kernel!, _results)),
                ]);
        }
    }

    private void AppendPublished(StringBuilder page)
    {
        PublishedReport published = PublishedReport.ProofOfConcept;
        page.Append("\n## Beside the proof of concept's own report\n\n");
        page.Append($"**Another metric, on other machines.** \"{published.Title}\" gives {published.Metric}, with {published.Software}: more is better\n");
        page.Append("there, and how much a machine could still do is in it. Ours, 100 at a time as well, are instructions as a ratio to SslStream: less is\n");
        page.Append($"better. The signs can be compared, the figures cannot. {published.Note}\n");
        MarkdownTable.AppendHead(
            page,
            [
                "its scenario", "our row", .. published.Machines.Select(machine => $"its {machine.Cores} cores"),
                "ours, both ends", "client only", "server only", "p99, both ends", "client only", "server only",
            ]);
        foreach (PublishedReport.Figure figure in published.Figures)
        {
            Measurement?[] ours = [.. ModeTable.KernelEnds.Select(mode => _results.Find(figure.Row, mode))];
            MarkdownTable.AppendLine(
                page,
                [
                    figure.Name,
                    figure.Row,
                    .. figure.ByMachine.Select(one =>
                        TextTable.Text($"{one.Standard:N0} -> {one.Kernel:N0} ({TextTable.Change((one.Kernel / one.Standard) - 1)})")),
                    .. ours.Select(one => TextTable.Ratio(one?.Ratio)),
                    .. ours.Select(one => TextTable.Ratio(one?.Load?.Percentile99Ratio)),
                ]);
        }
    }

    private void AppendAll(StringBuilder page)
    {
        page.Append("\n## Every figure\n");
        MarkdownTable.AppendHead(page, "row", "mode", "per operation", "spread", "ratio", "to", "over floor", "allocated");
        foreach (Measurement row in _results.Rows)
        {
            MarkdownTable.AppendLine(
                page,
                row.Scenario,
                row.Mode,
                TextTable.Amount(row.PerOp, row.Unit),
                TextTable.Percent(row.Spread),
                TextTable.Ratio(row.Ratio),
                row.RatioTo ?? "-",
                _results.FloorOf(row) is { } floor ? TextTable.Amount(row.PerOp - floor, row.Unit) : "-",
                row.AllocatedPerOp is { } bytes ? TextTable.Text($"{bytes:N0} B") : "-");
        }
    }

    private string DrawServers()
    {
        BarChart chart = new(
            "Instructions of the server's process as a ratio to nginx on kernel TLS: less is better",
            new("nginx, kernel TLS", "#2e8b57"),
            new("nginx", "#6aa36a"),
            new("Kestrel, SslStream", "#808080"),
            new("Kestrel, KernelTls", "#3b7dd8"));
        foreach (Row row in _serverRows)
        {
            chart.Add(row.Name, [.. ModeTable.Servers.Select(mode => _results.Find(row.Name, mode)?.Ratio)]);
        }

        return chart.ToSvg();
    }

    private double? FloorRatio(Row row) =>
        _results.Find(row.Name, ModeTable.Stock) is { } stock ? _results.FloorOf(stock) / stock.PerOp : null;

    /// <summary>Writes a chart, or deletes the chart of an earlier report if there is no new one.</summary>
    private static void WriteOrDelete(string path, string? text)
    {
        if (text is null)
        {
            File.Delete(path);
        }
        else
        {
            File.WriteAllText(path, text);
        }
    }
}
