using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Tests;

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
            Assert.True(goal.Below is null || row.Modes.Contains(goal.Below), goal.ToString());
            Assert.NotEqual("", goal.Describe(Measurement.Instructions));
        });
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
    [InlineData("static-server-1k", ModeTable.Opponent)]
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
        Assert.Equal("", goal.Judge(Measured(200_000), []));
        Assert.Equal("per operation", goal.Judge(Measured(200_001), []));
        Assert.Equal("<= 200.0 k", goal.Describe(Measurement.Instructions));
    }
}
