using KernelTls.Bench.Report;

namespace KernelTls.Bench.Tests;

public class ResultComparisonTests
{
    private static readonly BenchResults s_old = Results.Of(("h1-get-0", "sslstream", 1000), ("h1-get-0", "ktls", 800));

    [Theory]
    [InlineData(1000, 823, "", true, true)] // 2.9 % more
    [InlineData(1000, 825, "WORSE", false, false)] // 3.1 % more
    [InlineData(1000, 777, "", true, true)]
    [InlineData(1000, 775, "better", true, false)]
    [InlineData(1100, 880, "", true, false)] // the same ratio of other amounts
    [InlineData(950, 800, "WORSE", false, false)] // by the ratio, not the amount
    public void Ratios_are_judged_and_for_agreement_amounts_as_well(double stock, double ktls, string mark, bool isNoWorse, bool agrees)
    {
        BenchResults now = Results.Of(("h1-get-0", "sslstream", stock), ("h1-get-0", "ktls", ktls));
        using StringWriter output = new();
        Assert.Equal(isNoWorse, new ResultComparison(s_old, now).Write(output, mustAgree: false));
        string line = output.ToString().Split('\n').Single(line => line.Contains(" ktls ", StringComparison.Ordinal));
        Assert.EndsWith(mark.Length > 0 ? mark : "%", line, StringComparison.Ordinal);
        Assert.Contains("0.800", line, StringComparison.Ordinal);

        Assert.Equal(agrees, new ResultComparison(s_old, now).Write(TextWriter.Null, mustAgree: true));
    }

    [Fact]
    public void Without_ratios_amounts_are_judged()
    {
        BenchResults old = Results.Of(("h1-get-0", "ktls", 1000));
        Assert.True(new ResultComparison(old, Results.Of(("h1-get-0", "ktls", 1029))).Write(TextWriter.Null, mustAgree: false));
        Assert.False(new ResultComparison(old, Results.Of(("h1-get-0", "ktls", 1031))).Write(TextWriter.Null, mustAgree: false));
    }

    [Fact]
    public void What_only_one_run_has_is_named_and_not_judged()
    {
        BenchResults now = Results.Of(("h1-get-0", "sslstream", 1000), ("h2-get-0", "ktls", 1));
        using StringWriter output = new();
        Assert.True(new ResultComparison(s_old, now).Write(output, mustAgree: true));
        Assert.Contains("Only in old: h1-get-0/ktls\n", output.ToString(), StringComparison.Ordinal);
        Assert.Contains("Only in new: h2-get-0/ktls\n", output.ToString(), StringComparison.Ordinal);
    }

    [Fact]
    public void Runs_with_nothing_in_common_are_not_compared() =>
        Assert.Throws<BenchFailedException>(() => new ResultComparison(s_old, Results.Of(("h2-get-0", "ktls", 1))));
}
