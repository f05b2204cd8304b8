using System.Text.Json;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Tests;

public class ComparisonTests
{
    [Fact]
    public async Task A_measurement_that_fails_takes_nothing_from_the_others()
    {
        using StringWriter output = new();
        Comparison comparison = new(["stream-get-64k", "h2-get-0"], ["sslstream", "direct", "ktls"], output, Run);

        BenchResults results = await comparison.RunAsync(_ => { }, CancellationToken.None);

        Assert.Equal(
            ["stream-get-64k sslstream", "stream-get-64k direct", "stream-get-64k ktls", "h2-get-0 sslstream", "h2-get-0 ktls"],
            results.Rows.Select(row => $"{row.Scenario} {row.Mode}"));
        Assert.Equal(0.5, results.Find("h2-get-0", "ktls")!.Ratio);
        Assert.Equal("h2-get-0 direct: 'measure' has failed", Assert.Single(results.Failures));
        Assert.Contains($"5 of 6: h2-get-0 direct: failed: 'measure' has failed{Environment.NewLine}", output.ToString(), StringComparison.Ordinal);
        Assert.Contains("6 of 6: h2-get-0 ktls: ", output.ToString(), StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_run_that_is_cut_off_keeps_what_it_had()
    {
        string path = Path.GetTempFileName();
        using CancellationTokenSource cut = new();
        Comparison comparison = new(["h2-get-0"], ["sslstream", "ktls", "direct"], TextWriter.Null, (arguments, token) =>
        {
            if (arguments[2] == "direct")
            {
                cut.Cancel();
                token.ThrowIfCancellationRequested();
            }

            return Run(arguments, token);
        });
        try
        {
            await Assert.ThrowsAnyAsync<OperationCanceledException>(
                () => comparison.RunAsync(soFar => soFar.WriteTo(path), cut.Token));

            Assert.Equal(["sslstream"], BenchResults.Read(path).Rows.Select(row => row.Mode));
            Assert.False(File.Exists(path + ".unfinished"));
        }
        finally
        {
            File.Delete(path);
        }
    }

    private static Task<string> Run(string[] arguments, CancellationToken cancellationToken)
    {
        (string scenario, string mode) = (arguments[1], arguments[2]);
        return scenario == "h2-get-0" && mode == "direct"
            ? throw new BenchFailedException("'measure' has failed")
            : Task.FromResult(JsonSerializer.Serialize(
                Measurement.Of(scenario, mode, Measurement.Instructions, null, [mode == "ktls" ? 500 : 1_000]), BenchJson.Default.Measurement));
    }

    [Fact]
    public void Machines_share_the_rows_of_the_table_whole_and_about_evenly()
    {
        string[] names = [.. Row.All.Select(row => row.Name)];

        (string[] Rows, int Measurements)[] shares = Row.Share(names, [], machines: 2);

        Assert.Equal(2, shares.Length);
        Assert.Equal(names.Order(), shares.SelectMany(share => share.Rows).Order());
        Assert.Equal(Row.All.Sum(row => row.Modes.Count), shares.Sum(share => share.Measurements));
        int[] weights = [.. shares.Select(share => share.Rows.Select(Row.Find).Sum(row => row.Weight * row.Modes.Count))];
        Assert.InRange(Math.Abs(weights[0] - weights[1]), 0, Row.All.Max(row => row.Weight * row.Modes.Count));
    }

    [Fact]
    public void One_row_is_one_machine_s()
    {
        (string[] rows, int measurements) = Assert.Single(Row.Share(["h2-get-0"], ["sslstream", "ktls"], machines: 2));
        Assert.Equal(["h2-get-0"], rows);
        Assert.Equal(2, measurements);
    }

    [Fact]
    public void Parts_become_one_table_in_its_order()
    {
        BenchResults later = Results.Of(("h2-get-0", "sslstream", 1_000), ("static-server-1k", "nginx", 10)) with { Failures = ["one"] };
        BenchResults earlier = Results.Of(cryptoPerByte: 5, ("h1-get-0", "sslstream", 800), ("h1-get-0", "ktls", 400)) with { Failures = ["two"] };

        BenchResults all = BenchResults.Join([later, earlier]);

        Assert.Equal(
            ["h1-get-0 sslstream", "h1-get-0 ktls", "h2-get-0 sslstream", "static-server-1k nginx"],
            all.Rows.Select(row => $"{row.Scenario} {row.Mode}"));
        Assert.Equal(0.5, all.Find("h1-get-0", "ktls")!.Ratio);
        Assert.Equal(5, all.CryptoPerByte);
        Assert.Equal("nginx/9.6", all.Nginx);
        Assert.Equal(["one", "two"], all.Failures);
    }

    [Fact]
    public void Parts_of_different_machines_are_refused()
    {
        BenchFailedException refused = Assert.Throws<BenchFailedException>(
            () => BenchResults.Join([Results.Of(), Results.Of() with { Kernel = "8.8.8" }]));
        Assert.Contains("Linux 9.9.9-kernel", refused.Message, StringComparison.Ordinal);
        Assert.Contains("Linux 8.8.8", refused.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void Results_of_before_there_were_failures_have_none()
    {
        string path = Path.GetTempFileName();
        try
        {
            File.WriteAllText(path, """{"cell": "c", "kernel": "k", "openSsl": "o", "runtime": "r", "cryptoPerByte": null, "rows": []}""");

            Assert.Empty(BenchResults.Read(path).Failures);
        }
        finally
        {
            File.Delete(path);
        }
    }
}
