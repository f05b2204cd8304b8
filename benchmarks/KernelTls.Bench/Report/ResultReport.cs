using System.Text;
using System.Text.Json;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Report;

/// <summary>The results as pages that people look at: Markdown, charts, and the results themselves. A function of them alone.</summary>
internal sealed class ResultReport
{
    public const string Page = "README.md";
    public const string RatioChart = "ratios.svg";
    public const string ServerChart = "servers.svg";
    public const string Data = "results.json";

    private const string Kernel = ModeTable.Kernel;

    private static readonly string[] s_compared = [ModeTable.Opponent, "direct", Kernel, "ktls-nopad", "ktls-client", "ktls-server"];

    private readonly BenchResults _results;
    private readonly Row[] _connectionRows;
    private readonly Row[] _serverRows;

    public ResultReport(BenchResults results)
    {
        _results = results;
        Row[] measured = [.. Row.All.Where(row => results.Rows.Any(other => other.Scenario == row.Name))];
        _connectionRows = [.. measured.Where(row => row.Reference == ModeTable.Stock)];
        _serverRows = [.. measured.Where(row => row.Reference != ModeTable.Stock)];
    }

    public void WriteTo(string directory)
    {
        Directory.CreateDirectory(directory);
        File.WriteAllText(Path.Combine(directory, Page), ToMarkdown(directory));
        WriteOrDelete(Path.Combine(directory, RatioChart), _connectionRows.Length > 0 ? DrawRatios() : null);
        WriteOrDelete(Path.Combine(directory, ServerChart), _serverRows.Length > 0 ? DrawServers() : null);
        _results.WriteTo(Path.Combine(directory, Data));
    }

    /// <param name="directory">Where profiles of rows that miss their goals are looked for.</param>
    private string ToMarkdown(string directory)
    {
        StringBuilder page = new();
        page.Append("# What TLS costs, in instructions\n\n");
        page.Append($"Measured in the cell {_results.Surroundings}.\n");
        page.Append($"This page is written by a command, from [{Data}]({Data}); to measure, write it again, or see what has changed since:\n\n");
        page.Append("```\neng/bench --json results.json\neng/bench --report results.json\n");
        page.Append($"eng/bench --compare docs/results/{Data} results.json\n```\n\n");
        page.Append("Instructions, user and kernel, in an emulated machine: [ARCHITECTURE.md](../../ARCHITECTURE.md#the-benchmark) says how they are\n");
        page.Append("counted and what keeps them honest. They say what work is done, not how fast a processor does it.\n");
        AppendGoals(page, directory);
        AppendRatios(page);
        AppendServers(page);
        AppendPublished(page);
        AppendAll(page);
        return page.ToString();
    }

    private void AppendGoals(StringBuilder page, string directory)
    {
        List<(Measurement Row, Goal Goal, string Missed)> judged = [];
        foreach (Measurement row in _results.Rows)
        {
            if (Goal.Find(row) is { } goal && goal.Judge(row, _results.Rows) is { } missed)
            {
                judged.Add((row, goal, missed));
            }
        }

        (Measurement Row, Goal Goal, string Missed)[] failed = [.. judged.Where(one => one.Missed.Length > 0)];
        page.Append($"\n## Goals\n\n{judged.Count - failed.Length} of {judged.Count} goals that were measured hold; {Goal.All.Count} there are.\n");
        string[] gaps = [.. _results.Gaps];
        if (gaps.Length > 0)
        {
            page.Append($"\n- {string.Join("\n- ", gaps)}\n");
        }

        if (failed.Length == 0)
        {
            return;
        }

        AppendHead(page, "missed by", "goal", "measured", "", "where its instructions go");
        foreach ((Measurement row, Goal goal, string missed) in failed)
        {
            string profile = $"profile-{row.Scenario}-{row.Mode}.txt";
            AppendLine(
                page,
                $"{row.Scenario}, {row.Mode}",
                goal.Describe(row.Unit),
                $"{TextTable.Amount(row.PerOp, row.Unit)}, ratio {TextTable.Ratio(row.Ratio)}",
                missed,
                File.Exists(Path.Combine(directory, profile))
                    ? $"[{profile}]({profile})"
                    : row.Unit == Measurement.Instructions ? $"`eng/bench --profile {row.Scenario}/{row.Mode}`" : "");
        }
    }

    private void AppendRatios(StringBuilder page)
    {
        if (_connectionRows.Length == 0)
        {
            return;
        }

        page.Append("\n## Both ends, as a ratio to SslStream\n\n");
        page.Append($"![Ratio to SslStream by row, with floor and proof of concept]({RatioChart})\n\n");
        page.Append("The floor is the row without TLS and, for each byte of payload, bare AES-256-GCM: nobody gets below it. `poc` is the data path of\n");
        page.Append("the closed proof of concept, `direct` OpenSSL on the socket without the kernel, `ktls-client` and `ktls-server` have kernel TLS at\n");
        page.Append("one end and SslStream at the other.\n");
        AppendHead(page, ["", "SslStream", "floor", .. s_compared, "goal", "holds"]);
        foreach (Row row in _connectionRows)
        {
            Measurement? stock = _results.Find(row.Name, ModeTable.Stock);
            Measurement? kernel = _results.Find(row.Name, Kernel);
            Goal? goal = kernel is null ? null : Goal.Find(kernel);
            AppendLine(
                page,
                [
                    row.Name,
                    stock is null ? "-" : TextTable.Amount(stock.PerOp, stock.Unit),
                    TextTable.Ratio(FloorRatio(row)),
                    .. s_compared.Select(mode => TextTable.Ratio(_results.Find(row.Name, mode)?.Ratio)),
                    goal?.Describe(kernel!.Unit) ?? "-",
                    goal is null ? "-" : Goal.DescribeOutcome(goal.Judge(kernel!, _results.Rows)),
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
        page.Append($"![Instructions of the server's process by file size, as a ratio to nginx on kernel TLS]({ServerChart})\n\n");
        page.Append($"curl downloads a file again and again on one connection. `nginx-ktls` ({_results.Nginx}) has kernel TLS and sendfile; `sslstream` and\n");
        page.Append("`ktls` are Kestrel with `Results.File`. As a reverse proxy, Kestrel copies what HttpClient gets from an nginx without TLS.\n");
        AppendHead(page, ["", .. ModeTable.Servers, .. ModeTable.Servers.Skip(1).Select(mode => $"{mode} / {ModeTable.NginxKernel}"), "goal", "holds"]);
        foreach (Row row in _serverRows)
        {
            Measurement? kernel = _results.Find(row.Name, Kernel);
            Goal? goal = kernel is null ? null : Goal.Find(kernel);
            AppendLine(
                page,
                [
                    row.Name,
                    .. ModeTable.Servers.Select(mode => _results.Find(row.Name, mode) is { } one ? TextTable.Amount(one.PerOp, one.Unit) : "-"),
                    .. ModeTable.Servers.Skip(1).Select(mode => TextTable.Ratio(_results.Find(row.Name, mode)?.Ratio)),
                    goal?.Describe(kernel!.Unit) ?? "-",
                    goal is null ? "-" : Goal.DescribeOutcome(goal.Judge(kernel!, _results.Rows)),
                ]);
        }
    }

    private void AppendPublished(StringBuilder page)
    {
        PublishedReport published = PublishedReport.ProofOfConcept;
        page.Append("\n## Beside the proof of concept's own report\n\n");
        page.Append($"**Another metric, on other machines.** \"{published.Title}\" gives {published.Metric}, with {published.Software}: more is better\n");
        page.Append("there, and how much a machine could still do is in it. Ours are instructions as a ratio to SslStream: less is better. The signs can be\n");
        page.Append($"compared, the figures cannot. {published.Note}\n");
        AppendHead(
            page,
            [
                "its scenario", "our row", .. published.Machines.Select(machine => $"its {machine.Cores} cores"),
                "ours, at the client only", "ours, both ends",
            ]);
        foreach (PublishedReport.Figure figure in published.Figures)
        {
            AppendLine(
                page,
                [
                    figure.Name,
                    figure.Row,
                    .. figure.ByMachine.Select(one =>
                        TextTable.Text($"{one.Standard:N0} -> {one.Kernel:N0} ({TextTable.Change((one.Kernel / one.Standard) - 1)})")),
                    TextTable.Ratio(_results.Find(figure.Row, "ktls-client")?.Ratio),
                    TextTable.Ratio(_results.Find(figure.Row, Kernel)?.Ratio),
                ]);
        }
    }

    private void AppendAll(StringBuilder page)
    {
        page.Append("\n## Every figure\n");
        AppendHead(page, "row", "mode", "per operation", "spread", "ratio", "to", "over floor", "allocated");
        foreach (Measurement row in _results.Rows)
        {
            AppendLine(
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

    private string DrawRatios()
    {
        BarChart chart = new(
            "Instructions (idle-memory: bytes) as a ratio to SslStream: less is better",
            new("KernelTls, both ends", "#3b7dd8"),
            new("floor: no TLS, bare crypto", "#2e8b57", IsMark: true),
            new("proof of concept", "#d2691e", IsMark: true));
        foreach (Row row in _connectionRows)
        {
            chart.Add(
                row.Name, _results.Find(row.Name, Kernel)?.Ratio, FloorRatio(row), _results.Find(row.Name, ModeTable.Opponent)?.Ratio);
        }

        return chart.ToSvg();
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

    /// <summary>A chart of an earlier report must not stay beside this one.</summary>
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

    /// <summary>Names to the left, figures to the right.</summary>
    private static void AppendHead(StringBuilder page, params string[] titles)
    {
        page.Append('\n');
        AppendLine(page, titles);
        AppendLine(page, [.. titles.Select((_, column) => column == 0 ? "---" : "---:")]);
    }

    private static void AppendLine(StringBuilder page, params string[] fields) =>
        page.Append("| ").AppendJoin(" | ", fields.Select(field => field.Replace("|", "\\|", StringComparison.Ordinal))).Append(" |\n");
}
