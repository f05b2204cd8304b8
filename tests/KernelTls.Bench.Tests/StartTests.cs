using System.Text.Json;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Tests;

/// <summary>Tests the rows of what a process does first.</summary>
public class StartTests
{
    public static TheoryData<string, string> Cells
    {
        get
        {
            TheoryData<string, string> cells = [];
            foreach (Row row in Row.All.Where(row => row.IsStart))
            {
                cells.Add(row.Name, ModeTable.Stock);
                cells.Add(row.Name, ModeTable.Direct);
            }

            cells.Add("start-h1-1000", ModeTable.Floor);
            return cells;
        }
    }

    [Theory]
    [MemberData(nameof(Cells))]
    public async Task What_a_process_does_first_is_measured_from_before_the_first_connection(string name, string mode)
    {
        await using Scenario scenario = Row.Find(name).Create!(mode);

        Measurement measured = await Meter.MeasureStartAsync(name, mode, scenario);

        Assert.Equal(name == "start-stream" ? 1 : 1000, scenario.OperationsPerRound);
        Assert.True(measured.PerOp > 0, measured.ToString());
        Assert.NotNull(measured.CompiledMethods);
        Assert.Null(measured.WarmUpRounds);
        if (scenario is HttpExchange http)
        {
            Assert.Equal(1, http.Connections);
        }
    }

    [Fact]
    public async Task It_happens_once_in_a_process_so_the_middle_of_three_processes_counts()
    {
        Queue<(double PerOp, int Methods)> processes = new([(500, 50), (900, 90), (600, 60)]);
        Comparison comparison = new(["start-h1-1000"], ["ktls"], TextWriter.Null, (arguments, _) =>
        {
            (double perOp, int methods) = processes.Dequeue();
            Measurement one = Measurement.Of(arguments[1], arguments[2], Measurement.Instructions, null, [perOp]) with { CompiledMethods = methods };
            return Task.FromResult(JsonSerializer.Serialize(one, BenchJson.Default.Measurement));
        });

        Measurement measured = Assert.Single((await comparison.RunAsync(_ => { }, CancellationToken.None)).Rows);

        Assert.Empty(processes);
        Assert.Equal((600, 60, 0.6667), (measured.PerOp, measured.CompiledMethods, measured.Spread));
        Assert.Equal([500, 900, 600], measured.Rounds);
        Assert.Equal("0.6 k, spread 66.7 %, 60 methods compiled", ResultTable.Describe(measured));
    }

    /// <summary>Other rows make the compiler finish early. Here its default behavior is a part of the measurement.</summary>
    [Fact]
    public void The_compiler_is_as_applications_have_it()
    {
        string[] compiler = ["DOTNET_EnableWriteXorExecute", "DOTNET_TC_BackgroundWorkerTimeoutMs", "DOTNET_TC_CallCountThreshold", "DOTNET_TieredPGO"];
        IDictionary<string, string?> start = BenchProcess.DescribeSteady([BenchCommand.Measure, "start-h1-1000", "ktls"]).Environment;
        IDictionary<string, string?> settled = BenchProcess.DescribeSteady([BenchCommand.Measure, "h1-get-0", "ktls"]).Environment;

        Assert.All(compiler, name => Assert.False(start.ContainsKey(name), name));
        Assert.All(compiler, name => Assert.True(settled.ContainsKey(name), name));
        Assert.Equal("1", start["DOTNET_ThreadPool_ForceMaxWorkerThreads"]);
    }
}
