using KernelTls.Bench.Modes;
using KernelTls.Bench.Scenarios;
using KernelTls.Bench.Servers;

namespace KernelTls.Bench.Tests;

public class ServerTests
{
    [Theory]
    [InlineData(ModeTable.Nginx, false)]
    [InlineData(ModeTable.Nginx, true)]
    [InlineData(ModeTable.Stock, false)]
    [InlineData(ModeTable.Stock, true)]
    public async Task A_server_in_its_own_process_serves_and_its_own_time_counts(string mode, bool isProxy)
    {
        SkipWithout("curl");
        SkipWithout(isProxy || NginxServer.IsMode(mode) ? "nginx" : "curl");
        await using ServerScenario server = new(mode, size: 100_000, isProxy, operationsPerRound: 1);
        await server.PrepareAsync();
        Assert.NotEqual(Environment.ProcessId, server.MeasuredProcess);

        TimeSpan before = ProcessClock.Read(server.MeasuredProcess);
        server.Times = [];
        await server.RunAsync(20);
        Assert.True(ProcessClock.Read(server.MeasuredProcess) > before);
        Assert.Equal(20, server.Times.Count);
        Assert.All(server.Times, time => Assert.True(time > TimeSpan.Zero));
    }

    /// <summary>If the kernel has no TLS, nginx falls back silently. The row detects that.</summary>
    [Fact]
    public async Task A_server_that_is_not_in_its_mode_is_a_failure()
    {
        SkipWithout("curl");
        SkipWithout("nginx");
        await using ServerScenario server = new(ModeTable.NginxKernel, size: 1000, isProxy: false, operationsPerRound: 1);
        if (KtlsPlatform.Probe().IsSupported)
        {
            await server.PrepareAsync();
        }
        else
        {
            BenchFailedException failed = await Assert.ThrowsAsync<BenchFailedException>(server.PrepareAsync);
            Assert.Contains("the kernel counts TlsTxSw +0", failed.Message, StringComparison.Ordinal);
        }
    }

    [Fact]
    public void Threads_that_have_ended_are_in_a_processs_time()
    {
        TimeSpan worth = TimeSpan.FromMilliseconds(50);
        TimeSpan before = ProcessClock.Read(Environment.ProcessId);
        Thread thread = new(() =>
        {
            for (TimeSpan start = Environment.CpuUsage.TotalTime; Environment.CpuUsage.TotalTime - start < worth;)
            {
            }
        });
        thread.Start();
        thread.Join();
        Assert.True(ProcessClock.Read(Environment.ProcessId) - before >= worth);
    }

    [Fact]
    public void A_process_that_has_ended_has_no_time()
    {
        using System.Diagnostics.Process process = System.Diagnostics.Process.Start("true");
        process.WaitForExit();
        Assert.Throws<BenchFailedException>(() => ProcessClock.Read(process.Id));
    }

    internal static void SkipWithout(string program)
    {
        if (!(Environment.GetEnvironmentVariable("PATH") ?? "").Split(':').Any(folder => File.Exists(Path.Combine(folder, program))))
        {
            Assert.Skip($"{program} is not installed here.");
        }
    }
}
