using System.Diagnostics;
using KernelTls.LoadTest.Running;
using KernelTls.Tests;

namespace KernelTls.LoadTest.Tests;

public class PaceTests
{
    [Fact]
    public async Task Operations_are_not_faster_than_the_rate()
    {
        Pace pace = new(100);
        long start = Stopwatch.GetTimestamp();
        for (int i = 0; i < 21; i++)
        {
            await pace.WaitAsync(TestContext.Current.CancellationToken).AsTask().InTime($"operation {i}");
        }

        // The first operation is due at once, and a timer may be early by a millisecond.
        Assert.InRange(Stopwatch.GetElapsedTime(start).TotalMilliseconds, 199, double.MaxValue);
    }

    /// <summary>What a slow server delays counts from when it was due.</summary>
    [Fact]
    public async Task An_operation_that_is_late_counts_from_when_it_was_due()
    {
        Pace pace = new(10);
        long first = await pace.WaitAsync(TestContext.Current.CancellationToken);
        await Task.Delay(350, TestContext.Current.CancellationToken);

        Task<long> second = pace.WaitAsync(TestContext.Current.CancellationToken).AsTask();

        Assert.True(second.IsCompleted);
        Assert.Equal(100, Stopwatch.GetElapsedTime(first, await second).TotalMilliseconds, tolerance: 1);
    }

    [Fact]
    public void Without_a_rate_nothing_waits()
    {
        Pace pace = new(0);
        Assert.All(Enumerable.Range(0, 10_000), _ => Assert.True(pace.WaitAsync(CancellationToken.None).AsTask().IsCompletedSuccessfully));
    }
}
