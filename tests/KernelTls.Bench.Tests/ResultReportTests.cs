using System.Globalization;
using System.Xml.Linq;
using KernelTls.Bench.Report;
using KernelTls.Tests;

namespace KernelTls.Bench.Tests;

public sealed class ResultReportTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    private string Page => Read(ResultReport.Page);

    private static BenchResults Everything { get; } = Results.Of(
        cryptoPerByte: 5,
        ("h1-get-64k", "plain", 200_000),
        ("h1-get-64k", "sslstream", 1_000_000),
        ("h1-get-64k", "ktls", 700_000),
        ("h1-get-64k", "ktls-client", 900_000),
        ("c100-h1-get-64k", "plain", 150_000),
        ("c100-h1-get-64k", "sslstream", 800_000),
        ("c100-h1-get-64k", "ktls", 480_000),
        ("c100-h1-get-64k", "ktls-client", 640_000),
        ("idle-memory", "sslstream", 100_000),
        ("idle-memory", "ktls", 40_000),
        ("static-server-64k", "nginx-ktls", 400_000),
        ("static-server-64k", "nginx", 440_000),
        ("static-server-64k", "sslstream", 800_000),
        ("static-server-64k", "ktls", 480_000)).WithLoad("c100-h1-get-64k", ("sslstream", 2_000_000), ("ktls", 1_500_000));

    [Fact]
    public void The_page_says_where_it_was_measured_and_how_it_is_made_again()
    {
        Write(Everything);
        Assert.Contains("cell: Linux 9.9.9-kernel, OpenSSL 9.8.7, .NET 10.9.8, nginx/9.6", Page, StringComparison.Ordinal);
        Assert.Contains("eng/bench --runtime 10 --json net10.json\neng/bench --report net10.json\n", Page, StringComparison.Ordinal);
        Assert.Contains("eng/bench --compare docs/results/results.json net10.json\n", Page, StringComparison.Ordinal);
    }

    [Fact]
    public void Rows_have_ratio_floor_and_goal()
    {
        Write(Everything);
        double floor = (200_000 + (5 * 65_536)) / 1_000_000.0;
        Assert.Contains(
            TextTable.Text($"| h1-get-64k | 1,000.0 k | {floor:F3} | 1.006 | - | 0.700 | - | 0.900 | - |\n"),
            Page,
            StringComparison.Ordinal);
        Assert.Contains(
            TextTable.Text($"| h1-get-64k | 1,000.0 k | {floor:F3} | 36 % | - | 0.700 | 0.900 | - | 0.20 of the overhead | NO: overhead |\n"),
            Page,
            StringComparison.Ordinal);
        Assert.Contains("| idle-memory | 100,000 B | - | 0.447 | - | 0.400 |", Page, StringComparison.Ordinal);
        Assert.Contains(
            "| static-server-64k | 400.0 k | 440.0 k | 800.0 k | 480.0 k | 1.100 | 2.000 | 1.200 | <= 1.25 | yes |", Page, StringComparison.Ordinal);
    }

    /// <summary>A file's floor is an empty response and its share of a file that is sent without TLS.</summary>
    [Fact]
    public void A_file_has_the_floor_of_sendfile()
    {
        BenchResults results = Results.Of(
            cryptoPerByte: 1,
            ("stream-sendfile-4m", "plain", 4_000_000),
            ("h1-get-0", "plain", 80_000),
            ("static-1m", "plain", 9_000_000),
            ("static-1m", "sslstream", 10_000_000),
            ("static-1m", "ktls", 3_000_000));

        double floor = 80_000 + 1_000_000 + (1024 * 1024);
        Assert.Equal(floor, results.FloorOf(results.Find("static-1m", "sslstream")!));
        Assert.Equal(Math.Round((3_000_000 - floor) / (10_000_000 - floor), 3), results.OverheadLeftOf(results.Find("static-1m", "ktls")!));
    }

    /// <summary>One end alone cannot save what only the other end saves.</summary>
    [Fact]
    public void A_goal_below_the_floor_of_its_column_is_refused()
    {
        BenchResults possible = Results.Of(
            ("h1-get-64k", "plain", 500_000), ("h1-get-64k", "sslstream", 1_000_000), ("h1-get-64k", "ktls-client", 900_000), ("h1-get-64k", "ktls-server", 800_000));
        Assert.Empty(possible.ImpossibleGoals);

        BenchResults impossible = Results.Of(
            ("h1-get-64k", "plain", 500_000), ("h1-get-64k", "sslstream", 1_000_000), ("h1-get-64k", "ktls-client", 960_000), ("h1-get-64k", "ktls-server", 550_000));
        const string Line = "impossible: h1-get-64k ktls-client <= 0.945: the floor is 0.950";
        Assert.Equal([Line], impossible.ImpossibleGoals);
        Write(impossible);
        Assert.Contains($"\n- {Line}\n", Page, StringComparison.Ordinal);
    }

    [Fact]
    public void Rows_in_which_OpenSSL_on_the_socket_costs_less_are_named()
    {
        (string, string, double)[] cells = [("h1-get-64k", "plain", 500_000), ("h1-get-64k", "sslstream", 1_000_000), ("h1-get-64k", "ktls", 700_000)];
        Write(Results.Of([.. cells, ("h1-get-64k", "direct", 680_000)]));
        Assert.Contains("costs less than kernel TLS, both ends, in h1-get-64k (0.700 and 0.680).", Page, StringComparison.Ordinal);
        Write(Results.Of([.. cells, ("h1-get-64k", "direct", 695_000)]));
        Assert.Contains("In none of these rows", Page, StringComparison.Ordinal);
    }

    [Fact]
    public void A_goal_that_compares_with_what_was_not_measured_is_named()
    {
        BenchResults results = Results.Of(
            ("h1-get-64k", "sslstream", 1_000_000),
            ("h1-get-64k", "ktls", 600_000),
            ("static-server-64k", "ktls", 480_000));
        using StringWriter table = new();
        Assert.True(new ResultTable(results).Write(table));
        Write(results);

        string[] lines = [.. table.ToString().Split('\n').Where(line => line.StartsWith("not checked:", StringComparison.Ordinal))];
        const string Line = "not checked: h1-get-64k ktls 0.20 of the overhead: sslstream or plain was not measured";
        Assert.Equal([Line, "not checked: static-server-64k ktls <= 1.25: nginx-ktls was not measured"], lines);
        Assert.Contains($"\n- {Line}\n", Page, StringComparison.Ordinal);
    }

    [Fact]
    public void What_could_not_be_measured_is_said()
    {
        BenchResults results = Results.Of(("h1-get-64k", "sslstream", 1_000_000)) with { Failures = ["h1-get-64k ktls: out of luck"] };
        using StringWriter table = new();
        new ResultTable(results).Write(table);
        Write(results);

        Assert.Contains("not measured: h1-get-64k ktls: out of luck\n", table.ToString(), StringComparison.Ordinal);
        Assert.Contains("\n- not measured: h1-get-64k ktls: out of luck\n", Page, StringComparison.Ordinal);
    }

    [Fact]
    public void A_missed_goal_stands_beside_the_floor_of_its_column()
    {
        Write(Everything);
        Assert.Contains("| h1-get-64k, ktls | 0.20 of the overhead | 700.0 k, ratio 0.700, 0.36 left | overhead | 0.528 |", Page, StringComparison.Ordinal);

        // Met: idle-memory, static-server-64k, h1-get-64k with the client's end only, and its two under load.
        Assert.Contains($"5 of 6 goals that were measured hold; there are {Goal.All.Count} goals.", Page, StringComparison.Ordinal);

        Assert.DoesNotContain(ResultReport.Reasons, Page, StringComparison.Ordinal);
        File.WriteAllText(_directory[ResultReport.Reasons], "");
        Write(Everything);
        Assert.Contains("[misses.md](misses.md) says what the misses come down to.", Page, StringComparison.Ordinal);
    }

    [Fact]
    public void Load_has_tables_of_its_own()
    {
        Write(Everything);
        string goal = "0.20 of the overhead, p99 <= 1.00: yes | <= 0.945, p99 <= 1.00: yes | - |";
        Assert.Contains($"| c100-h1-get-64k | 800.0 k | 0.188 | - | 0.600 | 0.800 | - | {goal}\n", Page, StringComparison.Ordinal);
        Assert.Contains("| c100-h1-get-64k | 2,000.0 k | - | - | 0.750 | - | - |\n", Page, StringComparison.Ordinal);
        Assert.Contains("| c100-h1-get-64k | 3.00 | - | - | 1.000 | - | - |\n", Page, StringComparison.Ordinal);
        Assert.Contains("| c100-h1-get-64k | ktls | 1,000.0 k | 1,500.0 k | 0.750 | 20.50 | 3.00 | 1.000 | 5.00 | - |\n", Page, StringComparison.Ordinal);

        using StringWriter table = new();
        new ResultTable(Everything).Write(table);
        Assert.Matches(@"c100-h1-get-64k +ktls +1,000\.0 k +1,500\.0 k +0\.750 +20\.50 +3\.00 +1\.000 +5\.00 +-", table.ToString());
    }

    [Fact]
    public void Where_there_was_no_load_nothing_is_said_of_it()
    {
        const string Title = "## A hundred at a time";
        Write(Everything);
        Assert.Contains(Title, Page, StringComparison.Ordinal);
        Write(Everything with { Rows = [.. Everything.Rows.Where(row => !Scenarios.Row.Find(row.Scenario).IsLoad)] });
        Assert.DoesNotContain(Title, Page, StringComparison.Ordinal);
    }

    [Fact]
    public void What_others_have_published_stands_beside_ours_as_another_metric()
    {
        Write(Everything);
        Assert.Contains("**Another metric, on other machines.**", Page, StringComparison.Ordinal);
        PublishedReport.Figure figure = PublishedReport.ProofOfConcept.Figures.Single(figure => figure.Row == "c100-h1-get-64k");
        string line = Page.Split('\n').Single(line => line.StartsWith($"| {figure.Name} |", StringComparison.Ordinal));
        Assert.EndsWith("| 0.600 | 0.800 | - | 0.750 | - | - |", line, StringComparison.Ordinal);
        Assert.All(figure.ByMachine, one =>
            Assert.Contains(TextTable.Text($"{one.Standard:N0} -> {one.Kernel:N0} ({TextTable.Change((one.Kernel / one.Standard) - 1)})"), line, StringComparison.Ordinal));
    }

    [Fact]
    public void Published_figures_are_of_rows_that_there_are_and_of_every_machine() =>
        Assert.All(PublishedReport.ProofOfConcept.Figures, figure =>
        {
            Assert.Contains(Scenarios.Row.All, row => row.Name == figure.Row);
            Assert.Equal(PublishedReport.ProofOfConcept.Machines.Select(machine => machine.Name), figure.ByMachine.Select(one => one.Machine));
        });

    [Fact]
    public void Frozen_ratios_are_of_rows_that_there_are_once_for_each_runtime()
    {
        Assert.NotEmpty(PublishedReport.ProofOfConcept.Ratios);
        Assert.All(PublishedReport.ProofOfConcept.Ratios, ratio => Assert.Contains(Scenarios.Row.All, row => row.Name == ratio.Row));
        Assert.Distinct(PublishedReport.ProofOfConcept.Ratios.Select(ratio => (ratio.Row, ratio.Runtime)));
        Assert.Null(PublishedReport.ProofOfConcept.RatioOf("h1-get-0", runtimeMajor: 9));
    }

    [Fact]
    public void Charts_are_to_scale()
    {
        Write(Everything);
        XElement overhead = Chart(ResultReport.OverheadChart);
        double[] bars = [.. Widths(overhead, "bar")];
        double[] stock = [.. Widths(overhead, "stock")];
        double floor = 200_000 + (5 * 65_536);
        Assert.Equal(2, bars.Length);
        Assert.Equal((700_000 - floor) / (1_000_000 - floor), bars[0] / stock[0], 0.01);
        Assert.Equal((480_000 - 477_680) / (800_000 - 477_680.0), bars[1] / stock[1], 0.01);

        double[] servers = [.. Widths(Chart(ResultReport.ServerChart), "bar")];
        Assert.Equal([1, 1.1, 2, 1.2], servers.Select(width => Math.Round(width / servers[0], 2)));
    }

    [Fact]
    public void Two_runtimes_stand_side_by_side_each_by_its_own_goals_and_the_second_has_a_page_of_its_own()
    {
        BenchResults newer = Everything.On(".NET 11.0.1");
        new ResultReport(Everything, newer).WriteTo(_directory.FullName);

        Assert.Contains("\n## .NET 10.9.8 and .NET 11.0.1\n", Page, StringComparison.Ordinal);
        Assert.Contains("[net11.md](net11.md) has every figure of .NET 11.0.1.", Page, StringComparison.Ordinal);
        Assert.Contains(
            "| h1-get-64k | ktls | 1,000.0 k | 700.0 k | 0.700 | 0.20 of the overhead: NO: overhead | 1,000.0 k | 700.0 k | 0.700 | 0.20 of the overhead: NO: overhead |\n",
            Page,
            StringComparison.Ordinal);
        Assert.Contains("| static-server-64k | ktls | 400.0 k | 480.0 k | 1.200 | <= 1.25: yes | 400.0 k |", Page, StringComparison.Ordinal);
        Assert.Contains("eng/bench --runtime 11 --json net11.json\neng/bench --report net10.json net11.json\n", Page, StringComparison.Ordinal);

        string second = Read("net11.md");
        Assert.StartsWith("# What TLS costs, in instructions: .NET 11.0.1\n", second, StringComparison.Ordinal);
        Assert.Contains("(net11-overhead.svg)", second, StringComparison.Ordinal);
        Assert.DoesNotContain("\n## .NET 10", second, StringComparison.Ordinal);
        Assert.Equal(newer.Runtime, BenchResults.Read(_directory["net11-results.json"]).Runtime);
        Assert.NotEmpty(Widths(Chart("net11-overhead.svg"), "bar"));
    }

    [Fact]
    public void What_only_one_of_two_runtimes_has_is_shown_beside_nothing()
    {
        new ResultReport(Everything, Results.Of(("idle-memory", "ktls", 41_000)).On(".NET 11.0.1")).WriteTo(_directory.FullName);
        Assert.Contains("| h1-get-64k | ktls-client | 1,000.0 k | 900.0 k | 0.900 | <= 0.945: yes | - | - | - | - |\n", Page, StringComparison.Ordinal);
        Assert.Contains("| - | 41,000 B | - | <= 0.41: - |\n", Page, StringComparison.Ordinal);
    }

    [Fact]
    public void Two_results_of_one_runtime_are_no_report() =>
        Assert.Throws<BenchFailedException>(() => new ResultReport(Everything, Everything.On(".NET 10.0.99")));

    [Fact]
    public void The_rival_of_the_newer_runtime_has_a_column_where_it_was_measured()
    {
        Write(Everything);
        Assert.DoesNotContain("tlssession", Page, StringComparison.Ordinal);
        Write(Results.Of(("idle-memory", "sslstream", 100_000), ("idle-memory", "tlssession", 39_000), ("idle-memory", "ktls", 40_000)).On(".NET 11.0.1"));
        Assert.Contains(
            "| idle-memory | 100,000 B | - | 0.471 | - | 0.400 | - | - | - | 0.390 |\n",
            Page,
            StringComparison.Ordinal);
    }

    [Fact]
    public void The_same_results_make_the_same_pages_and_are_kept_beside_them()
    {
        Write(Everything);
        string[] names = [ResultReport.Page, ResultReport.OverheadChart, ResultReport.ServerChart, ResultReport.Data];
        string[] first = [.. names.Select(Read)];
        Write(BenchResults.Read(_directory[ResultReport.Data]));
        Assert.Equal(first, names.Select(Read));
    }

    [Fact]
    public void Where_no_server_was_measured_nothing_is_said_of_servers()
    {
        Write(Everything);
        Write(Everything with { Rows = [.. Everything.Rows.Where(row => row.Scenario == "idle-memory")] });
        Assert.False(File.Exists(_directory[ResultReport.ServerChart]));
        Assert.DoesNotContain(ResultReport.ServerChart, Page, StringComparison.Ordinal);
        Assert.False(File.Exists(_directory[ResultReport.OverheadChart]));
    }

    [Fact]
    public void Libraries_have_a_table_with_a_goal_for_each_woven_mode()
    {
        const string Title = "## Libraries: the client's process alone";
        Write(Everything);
        Assert.DoesNotContain(Title, Page, StringComparison.Ordinal);

        Write(Results.Of(
            ("lib-redis-64k", "unwoven", 700_000), ("lib-redis-64k", "sslstream", 702_100), ("lib-redis-64k", "ktls", 693_000), ("lib-redis-64k", "ktls-nopad", 630_000)));
        Assert.Contains(Title, Page, StringComparison.Ordinal);
        Assert.Contains(
            "| lib-redis-64k | 700.0 k | 702.1 k | 693.0 k | 630.0 k | 1.003 | <= 1.005 | yes | 0.990 | <= 0.945 | NO: ratio | 0.900 | - | - |\n",
            Page,
            StringComparison.Ordinal);
        Assert.DoesNotContain("## Servers", Page, StringComparison.Ordinal);
        Assert.False(File.Exists(_directory[ResultReport.ServerChart]));
    }

    [Theory]
    [InlineData("")]
    [InlineData("{}")]
    [InlineData("not json")]
    public void What_is_no_result_is_refused(string text)
    {
        File.WriteAllText(_directory["file"], text);
        Assert.Contains(_directory["file"], Assert.Throws<BenchFailedException>(() => BenchResults.Read(_directory["file"])).Message, StringComparison.Ordinal);
    }

    private void Write(BenchResults results) => new ResultReport(results).WriteTo(_directory.FullName);

    private string Read(string name) => File.ReadAllText(_directory[name]);

    private XElement Chart(string name) => XDocument.Parse(Read(name)).Root!;

    private static IEnumerable<XElement> Elements(XElement chart, string kind) =>
        chart.Descendants().Where(element => element.Attribute("class")?.Value == kind);

    private static IEnumerable<double> Widths(XElement chart, string kind) => Elements(chart, kind).Select(element => Number(element, "width"));

    private static double Number(XElement element, string name) => double.Parse(element.Attribute(name)!.Value, CultureInfo.InvariantCulture);
}
