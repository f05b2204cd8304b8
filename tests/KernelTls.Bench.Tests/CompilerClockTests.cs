using System.Diagnostics;
using System.Globalization;
using System.Runtime.CompilerServices;
using KernelTls.Bench.Servers;

namespace KernelTls.Bench.Tests;

[Trait("runtime", "11")]
public class CompilerClockTests
{
    private static readonly TimeSpan s_long = TimeSpan.FromSeconds(60);

    [Fact]
    public void A_hot_method_of_this_process_costs_its_compiler_time()
    {
        TimeSpan before = CompilerClock.Read(Environment.ProcessId);
        Stopwatch since = Stopwatch.StartNew();
        TimeSpan after;
        do
        {
            for (int i = 0; i < 100; i++)
            {
                _ = Hot<CompilerClockTests>(i);
            }

            Thread.Sleep(20);
            after = CompilerClock.Read(Environment.ProcessId);
        }
        while (after <= before && since.Elapsed < s_long);

        Assert.True(after > before, "nothing was compiled again, or its thread has another name");
        Assert.True(after < Process.GetCurrentProcess().TotalProcessorTime);
    }

    [Fact]
    public void Other_processes_have_none()
    {
        using Process sleep = Process.Start("sleep", "60");
        Assert.Equal(TimeSpan.Zero, CompilerClock.Read(sleep.Id));
        sleep.Kill();
        sleep.WaitForExit(s_long);
        Assert.Equal(TimeSpan.Zero, CompilerClock.Read(sleep.Id));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static string Hot<T>(int i) => (i + typeof(T).Name).ToString(CultureInfo.InvariantCulture);
}
