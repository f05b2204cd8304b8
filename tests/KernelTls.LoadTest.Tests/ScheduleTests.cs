using KernelTls.LoadTest.Running;
using KernelTls.Tests;

namespace KernelTls.LoadTest.Tests;

public class ScheduleTests
{
    /// <summary>Even on a slow machine there is something to report.</summary>
    [Fact]
    public async Task A_phase_lasts_until_something_was_done_in_it()
    {
        Schedule schedule = new(0, 0.001);
        SemaphoreSlim step = new(0);
        List<bool> counted = [];
        Task running = schedule.RunAsync(
            async () =>
            {
                while (!schedule.IsOver)
                {
                    await step.WaitAsync();
                    counted.Add(schedule.Note());
                }
            },
            CancellationToken.None);
        await running.StaysPending();
        Assert.Empty(counted);

        // The first operation ends the warm-up. The phases decide which of the following ones is the first to count.
        Task feeding = Task.Run(async () =>
        {
            while (!running.IsCompleted)
            {
                step.Release();
                await Task.Yield();
            }
        });
        await running.InTime("the schedule");
        await feeding.InTime();
        Assert.Contains(true, counted);
        Assert.False(counted[0]);
        Assert.True(schedule.Counted > TimeSpan.Zero);
    }

    [Fact]
    public async Task A_phase_waits_for_each_kind_of_operation()
    {
        Schedule schedule = new(0, 0.001, kinds: 2);
        int kinds = 1;
        Task running = schedule.RunAsync(
            async () =>
            {
                while (!schedule.IsOver)
                {
                    schedule.Note();
                    if (Volatile.Read(ref kinds) == 2)
                    {
                        schedule.Note(kind: 1);
                    }

                    await Task.Yield();
                }
            },
            CancellationToken.None);
        await running.StaysPending();

        Volatile.Write(ref kinds, 2);

        await running.InTime("the schedule");
    }

    [Fact]
    public async Task A_load_that_fails_fails_the_run()
    {
        Schedule schedule = new(60, 60);

        await Assert.ThrowsAsync<IOException>(() =>
            schedule.RunAsync(() => Task.FromException(new IOException()), CancellationToken.None).InTime());

        Assert.True(schedule.IsOver);
    }

    [Fact]
    public async Task A_load_that_ends_too_early_is_a_failure()
    {
        LoadTestFailedException e = await Assert.ThrowsAsync<LoadTestFailedException>(() =>
            new Schedule(60, 60).RunAsync(() => Task.CompletedTask, CancellationToken.None).InTime());

        Assert.Contains("before its time", e.Message, StringComparison.Ordinal);
    }
}
