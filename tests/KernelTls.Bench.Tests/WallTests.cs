using System.Diagnostics;
using System.Linq.Expressions;
using KernelTls.Bench.Scenarios;
using KernelTls.Bench.Wall;

namespace KernelTls.Bench.Tests;

public class WallTests
{
    private const string Processor = "model name\t: Some Processor 3000\n";
    private const string UserModeLinux = "vendor_id\t: User Mode Linux\nmodel name\t: UML\nmode\t\t: skas\n";

    [Theory]
    [InlineData("trixie-7.2", Processor, null, "the lab's cell trixie-7.2, an emulated machine")]
    [InlineData(null, "model name\t: QEMU TCG CPU version 2.5+\n", null, "processor is emulated")]
    [InlineData(null, UserModeLinux, null, "this machine is User-Mode Linux")]
    [InlineData("uml-7.2", UserModeLinux, "ModuleMissing", "this machine is User-Mode Linux")]
    [InlineData(null, Processor, "ModuleMissing", "has no kernel TLS (ModuleMissing)")]
    public void A_clock_that_means_nothing_is_refused(string? cell, string processor, string? notSupported, string reason) =>
        Assert.Contains(reason, NativeMachine.ReasonToRefuse(cell, processor, notSupported), StringComparison.Ordinal);

    [Fact]
    public void A_machine_of_its_own_with_kernel_TLS_is_not_refused() =>
        Assert.Null(NativeMachine.ReasonToRefuse(cell: null, Processor, notSupported: null));

    [Fact]
    public void Percentiles_rate_and_processor_time_are_those_of_the_operations()
    {
        // 1 to 100 microseconds in no particular order, 5,050 in total.
        TimeSpan[] times = [.. Enumerable.Range(1, 100).Select(i => TimeSpan.FromMicroseconds(i * 37 % 101))];
        WallMeasurement measured = WallMeasurement.Of("row", "mode", times, concurrency: 1, TimeSpan.FromSeconds(1.5), systemCallsPerOp: 4, notCounted: null);
        Assert.Equal(
            new WallMeasurement("row", "mode", 100, Math.Round(100 / 0.00505, 1), 50.5, 50, 99, 1.5, 4, null),
            measured);
    }

    [Theory]
    [InlineData("1234,,raw_syscalls:sys_enter,5678,100.00,,\n", 1234L, null)]
    [InlineData("<not counted>,,raw_syscalls:sys_enter,0,100.00,,\n", null, "perf: <not counted>,,raw_syscalls:sys_enter,0,100.00,,")]
    [InlineData("event syntax error\n and more\n", null, "perf: event syntax error")]
    [InlineData("", null, "perf: perf said nothing")]
    public void What_perf_says_is_a_count_or_a_reason(string said, long? count, string? reason) =>
        Assert.Equal((count, reason), SystemCalls.Parse(said));

    [Theory]
    [InlineData("stream-pingpong-64", "plain")]
    [InlineData("stream-connclose", "sslstream")]
    [InlineData("h1-get-0", "sslstream")]
    public async Task A_row_runs_by_the_clock(string name, string mode)
    {
        await using Scenario scenario = Row.Find(name).Create!(mode);
        WallMeasurement measured = await WallClock.MeasureAsync(name, mode, scenario, TimeSpan.FromMilliseconds(1));

        // One round, and each of its operations took some time.
        Assert.Equal(scenario.OperationsPerRound, measured.Operations);
        Assert.InRange(measured.Median, 0.1, measured.Percentile99);
        Assert.True(measured.CpuSeconds > 0);

        // A round trip of one operation is at least four calls. If perf may not count them, the result says so.
        Assert.True(measured.SystemCallsPerOp >= 4 || measured.NotCounted is not null, measured.ToString());
    }

    [Fact]
    public async Task The_measurement_begins_a_second_after_the_last_method_was_compiled()
    {
        await using Compiling scenario = new(TimeSpan.FromSeconds(2));

        _ = await WallClock.MeasureAsync("row", "mode", scenario, TimeSpan.FromSeconds(1));

        Assert.InRange(scenario.FirstMeasured - scenario.LastCompiled, TimeSpan.FromSeconds(1), TimeSpan.MaxValue);
    }

    /// <summary>Compiles a method in each of its rounds for some time.</summary>
    private sealed class Compiling(TimeSpan length) : Scenario
    {
        private readonly Stopwatch _clock = Stopwatch.StartNew();

        public TimeSpan LastCompiled { get; private set; }

        public TimeSpan FirstMeasured { get; private set; }

        public override int OperationsPerRound => 1;

        public override Task PrepareAsync() => Task.CompletedTask;

        public override async Task RunAsync(int operations)
        {
            await Task.Delay(TimeSpan.FromMilliseconds(20));
            if (Times is { } times)
            {
                FirstMeasured = FirstMeasured == TimeSpan.Zero ? _clock.Elapsed : FirstMeasured;
                times.Add(TimeSpan.FromMilliseconds(20));
            }

            if (_clock.Elapsed < length)
            {
                Assert.Equal(operations, Expression.Lambda<Func<int>>(Expression.Constant(operations)).Compile()());
                LastCompiled = _clock.Elapsed;
            }
        }

        public override ValueTask DisposeAsync() => ValueTask.CompletedTask;
    }
}
