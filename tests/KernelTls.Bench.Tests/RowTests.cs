using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Tests;

[Trait("runtime", "11")]
public class RowTests
{
    [Fact]
    public void A_rows_own_modes_have_the_one_that_ratios_are_to()
    {
        Assert.All(Row.All, row =>
        {
            Assert.Contains(row.Reference, row.Modes);
            Assert.Empty(row.Modes.Except(row.PossibleModes));
        });
        Assert.Equal(Row.All.Count, Row.All.DistinctBy(row => row.Name).Count());
    }

    [Fact]
    public void A_goal_is_for_a_row_in_one_of_its_modes()
    {
        Assert.NotEmpty(Goal.All);
        Assert.All(Goal.All, goal =>
        {
            Row row = Row.Find(goal.Scenario);
            Assert.Contains(goal.Mode, row.Modes);
            Assert.NotEqual("", goal.Describe(Measurement.Instructions));
        });
    }

    [Fact]
    public void A_row_has_one_goal_at_most_for_a_mode() =>
        Assert.Equal(Goal.All.Count, Goal.All.DistinctBy(goal => (goal.Scenario, goal.Mode)).Count());

    [Fact]
    public void The_newer_runtimes_rival_has_the_rows_of_streams_and_only_on_that_runtime()
    {
        bool isThere = Environment.Version.Major >= 11;
        Row[] possible = [.. Row.All.Where(row => row.PossibleModes.Contains(ModeTable.TlsSession))];
        Assert.Equal(["stream-pingpong-64", "stream-get-64k", "stream-connclose", "idle-memory"], possible.Select(row => row.Name));
        Assert.All(possible, row => Assert.Equal(isThere, row.Modes.Contains(ModeTable.TlsSession)));
    }

    [Theory]
    [InlineData("stream-pingpong-64")]
    [InlineData("stream-get-64k")]
    [InlineData("stream-connclose")]
    public async Task The_newer_runtimes_rival_runs_there_and_says_elsewhere_where_it_would(string name)
    {
        if (Environment.Version.Major < 11)
        {
            BenchFailedException refused = Assert.Throws<BenchFailedException>(() => Row.Find(name).Create!(ModeTable.TlsSession));
            Assert.EndsWith("has no TlsSocketSession; .NET 11 has (--runtime 11)", refused.Message, StringComparison.Ordinal);
            return;
        }

        await using Scenario scenario = Row.Find(name).Create!(ModeTable.TlsSession);
        await scenario.PrepareAsync();
        await scenario.RunAsync(operations: 3);
        scenario.Verify();
    }

    [Fact]
    public void The_rival_that_no_package_has_is_for_rows_of_HTTP_and_says_how_to_give_it()
    {
        string[] possible = [.. Row.All.Where(row => row.PossibleModes.Contains(ModeTable.DirectTls)).Select(row => row.Name)];
        BenchFailedException refused = Assert.Throws<BenchFailedException>(() => Row.Find("h1-get-0").Create!(ModeTable.DirectTls));

        Assert.NotEmpty(possible);
        Assert.All(possible, name => Assert.Matches("^(c100-)?(h1|h2|grpc|static)-", name));
        Assert.All(Row.All, row => Assert.DoesNotContain(ModeTable.DirectTls, row.Modes));
        Assert.EndsWith("give the assembly by --directtls FILE, with --runtime 11", refused.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void Modes_that_are_asked_for_are_those_of_each_row_that_it_can()
    {
        Assert.Equal(
            [("stream-get-64k", "ktls"), ("static-server-1k", "nginx-ktls"), ("static-server-1k", "ktls")],
            Row.Select(["static-server-1k", "stream-get-64k"], ["ktls", "nginx-ktls"]).Select(cell => (cell.Row.Name, cell.Mode)));
        Assert.Equal(["nginx-ktls", "nginx", "sslstream", "ktls"], Row.Select(["static-server-16m"], []).Select(cell => cell.Mode));
    }

    [Theory]
    [InlineData("static-server-1k", ModeTable.Direct)]
    [InlineData("h1-get-0", ModeTable.Nginx)]
    public void A_row_without_any_of_the_modes_is_refused_by_name(string scenario, string mode)
    {
        BenchFailedException refused = Assert.Throws<BenchFailedException>(() => Row.Select([scenario], [mode]));
        Assert.StartsWith($"{scenario} is not measured in these modes", refused.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void A_row_that_there_is_not_is_refused_by_name() =>
        Assert.Equal("there is no row nope", Assert.Throws<BenchFailedException>(() => Row.Select("nope", "ktls")).Message);

    [Fact]
    public void An_amount_can_be_a_goal()
    {
        Measurement Measured(double perOp) => Results.Of(("static-server-1k", "ktls", perOp)).Rows[0];
        Goal goal = Goal.Find(Measured(1))!;
        Assert.Equal("", goal.Judge(Measured(200_000), Results.Of()));
        Assert.Equal("per operation", goal.Judge(Measured(200_001), Results.Of()));
        Assert.Equal("<= 200.0 k", goal.Describe(Measurement.Instructions));
    }
}
