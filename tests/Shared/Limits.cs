using System.Runtime.CompilerServices;

namespace KernelTls.Tests;

/// <summary>Limits every wait, and reports the awaited event.</summary>
internal static class Limits
{
    /// <summary>Gets the limit of a wait. The lab's machines are emulated and an order of magnitude slower.</summary>
    public static TimeSpan Wait { get; } = TimeSpan.FromSeconds(Cell.IsLab ? 120 : 30);

    /// <summary>Gets the time in which something must not happen.</summary>
    public static TimeSpan Absence { get; } = TimeSpan.FromMilliseconds(Cell.IsLab ? 1000 : 150);

    public static Task InTime(this Task task, [CallerArgumentExpression(nameof(task))] string what = "") => WithinAsync(task, Wait, what);

    public static async Task<T> InTime<T>(this Task<T> task, [CallerArgumentExpression(nameof(task))] string what = "")
    {
        await ((Task)task).InTime(what);
        return await task;
    }

    /// <summary>Waits with the specified limit.</summary>
    public static async Task<T> Within<T>(this Task<T> task, TimeSpan limit, string what)
    {
        await WithinAsync(task, limit, what);
        return await task;
    }

    /// <inheritdoc cref="Within{T}"/>
    public static Task Within(this Task task, TimeSpan limit, string what) => WithinAsync(task, limit, what);

    public static Task InTime(this ValueTask task, [CallerArgumentExpression(nameof(task))] string what = "") =>
        task.AsTask().InTime(what);

    public static Task<T> InTime<T>(this ValueTask<T> task, [CallerArgumentExpression(nameof(task))] string what = "") =>
        task.AsTask().InTime(what);

    /// <summary>Asserts that the task is still not complete after a while.</summary>
    public static async Task StaysPending(this Task task, [CallerArgumentExpression(nameof(task))] string what = "")
    {
        await Assert.ThrowsAsync<TimeoutException>(() => task.WaitAsync(Absence));
        Assert.False(task.IsCompleted, $"{what} was expected to wait.");
    }

    /// <summary>Waits until the condition holds, and asserts that it does in time.</summary>
    public static async Task UntilAsync(Func<bool> condition, string what)
    {
        for (long deadline = Environment.TickCount64 + (long)Wait.TotalMilliseconds; !condition();)
        {
            Assert.True(Environment.TickCount64 < deadline, $"Waited {Wait.TotalSeconds} s for {what}.");
            await Task.Delay(10);
        }
    }

    /// <summary>Runs blocking code on a separate thread.</summary>
    public static Task<T> Blocking<T>(Func<T> work) => Task.Factory.StartNew(
        work, CancellationToken.None, TaskCreationOptions.LongRunning, TaskScheduler.Default);

    /// <inheritdoc cref="Blocking{T}(Func{T})"/>
    public static Task Blocking(Action work) => Task.Factory.StartNew(
        work, CancellationToken.None, TaskCreationOptions.LongRunning, TaskScheduler.Default);

    private static async Task WithinAsync(Task task, TimeSpan limit, string what)
    {
        try
        {
            await task.WaitAsync(limit);
        }
        catch (TimeoutException) when (!task.IsCompleted)
        {
            throw new TimeoutException($"Waited {limit.TotalSeconds} s for: {what}");
        }
    }
}
