using KernelTls.LoadTest.Generators;
using KernelTls.Tests;

namespace KernelTls.LoadTest.Tests;

/// <summary>Tests what is read from the reports of load generators. <see cref="ScenarioTests"/> runs them.</summary>
public class GeneratorTests
{
    [Fact]
    public void Wrk_reports_by_the_script()
    {
        GeneratorReport report = new Wrk().Read("Running 2s test\nreport: 300 2000000 3 1 100 200 300 400 500 600\n", "")!;

        Assert.Equal((300, 2, 3, 1), (report.Requests, report.Seconds, report.Bad, report.Errors));
        Assert.Equal([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], report.Times);
        Assert.Null(new Wrk().Read("unable to connect to 127.0.0.1:1", ""));
    }

    [Fact]
    public void H2load_reports_by_its_log()
    {
        using TemporaryDirectory directory = new();
        File.WriteAllText(directory["log"], "1\t200\t3000\n2\t200\t1000\n3\t500\t2000\n");
        const string Text = """
            Application protocol: h2
            finished in 1.50s, 2.00 req/s, 1KB/s
            requests: 3 total, 3 started, 3 done, 2 succeeded, 1 failed, 4 errored, 5 timeout
            """;

        GeneratorReport report = new H2Load().Read(Text, directory.FullName)!;

        Assert.Equal((3, 1.5, 1, 9), (report.Requests, report.Seconds, report.Bad, report.Errors));
        Assert.Equal((1, 2, 3), (report.Times[0], report.Times[1], report.Times[5]));
        Assert.Null(new H2Load().Read(Text.Replace(": h2", ": http/1.1", StringComparison.Ordinal), directory.FullName));
    }
}
