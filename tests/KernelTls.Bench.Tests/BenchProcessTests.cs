using System.Diagnostics;
using System.Text.Json.Nodes;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Tests;

public class BenchProcessTests
{
    private static readonly TimeSpan s_long = TimeSpan.FromSeconds(60);

    [Fact]
    public async Task What_it_printed_is_returned()
    {
        Assert.Equal("all of it", await BenchProcess.RunAsync(Shell("printf 'all of it'"), "the shell", s_long, TestContext.Current.CancellationToken));
    }

    [Fact]
    public async Task A_process_that_does_not_end_is_ended_and_its_threads_are_described()
    {
        long started = Stopwatch.GetTimestamp();
        BenchFailedException failed = await Assert.ThrowsAsync<BenchFailedException>(() => BenchProcess.RunAsync(
            Shell("sleep 61 & wait"), "the shell", TimeSpan.FromSeconds(0.5), TestContext.Current.CancellationToken));

        Assert.True(Stopwatch.GetElapsedTime(started) < s_long, "it was waited for");
        Assert.StartsWith("'the shell' did not end in 0.5 s; its threads, ", failed.Message, StringComparison.Ordinal);
        Assert.Matches(@"\n\d+ sh -c sleep 61 & wait\n  sh S \S* \d+ ms\n\d+ sleep 61\n  sleep S \S* \d+ ms$", failed.Message);
        int sleep = int.Parse(failed.Message.Split('\n')[^2].Split(' ')[0], System.Globalization.CultureInfo.InvariantCulture);
        Assert.True(SpinWait.SpinUntil(() => !IsAlive(sleep), s_long), "what it had started lives on");
    }

    [Fact]
    public async Task What_a_process_that_failed_has_left_behind_is_not_waited_for()
    {
        long started = Stopwatch.GetTimestamp();
        BenchFailedException failed = await Assert.ThrowsAsync<BenchFailedException>(
            () => BenchProcess.RunAsync(Shell("sleep 20 & exit 3"), "the shell", s_long, TestContext.Current.CancellationToken));

        Assert.True(Stopwatch.GetElapsedTime(started) < TimeSpan.FromSeconds(15), "its child was waited for");
        Assert.Equal("'the shell' ended with exit code 3", failed.Message);
    }

    [Fact]
    public async Task A_run_that_is_cut_off_ends_its_process()
    {
        using CancellationTokenSource cut = new(TimeSpan.FromSeconds(0.5));

        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => BenchProcess.RunAsync(Shell("exec sleep 62"), "the shell", s_long, cut.Token));
    }

    [Fact]
    public void A_process_without_telemetry_is_one_by_its_runtime_configuration()
    {
        ProcessStartInfo start = BenchProcess.DescribeChild("measure", "stream-connclose", ModeTable.KernelWithoutTelemetry);

        string configuration = start.ArgumentList[start.ArgumentList.IndexOf("--runtimeconfig") + 1];
        JsonNode options = JsonNode.Parse(File.ReadAllText(configuration))!["runtimeOptions"]!;
        Assert.False((bool)options["configProperties"]!["System.Diagnostics.Tracing.EventSource.IsSupported"]!);
        Assert.False((bool)options["configProperties"]!["System.Diagnostics.Metrics.Meter.IsSupported"]!);
        Assert.NotNull(options["frameworks"]);
        Assert.DoesNotContain("--runtimeconfig", BenchProcess.DescribeChild("measure", "stream-connclose", ModeTable.Kernel).ArgumentList);
    }

    [Fact]
    public void A_process_with_telemetry_is_not_measured_as_one_without() =>
        Assert.Throws<BenchFailedException>(BenchProcess.VerifyWithoutTelemetry);

    [Fact]
    public async Task A_process_without_telemetry_starts()
    {
        ProcessStartInfo start = BenchProcess.DescribeChild("list", ModeTable.KernelWithoutTelemetry);
        start.ArgumentList.Remove(ModeTable.KernelWithoutTelemetry);

        string listed = await BenchProcess.RunAsync(start, "the list", s_long, TestContext.Current.CancellationToken);

        Assert.Contains($" {ModeTable.KernelWithoutTelemetry} ", listed, StringComparison.Ordinal);
    }

    private static ProcessStartInfo Shell(string command) => new("sh", ["-c", command]);

    private static bool IsAlive(int processId)
    {
        try
        {
            // The command line of a zombie is empty.
            return File.ReadAllText($"/proc/{processId}/cmdline").Length > 0;
        }
        catch (IOException)
        {
            return false;
        }
    }
}
