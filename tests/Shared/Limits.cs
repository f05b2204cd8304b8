using System.Runtime.CompilerServices;

namespace KernelTls.Tests;

/// <summary>Every wait has a limit and says what it waited for.</summary>
internal static class Limits
{
    /// <summary>Machines of the lab are emulated: an order of magnitude slower.</summary>
    public static TimeSpan Wait { get; } = TimeSpan.FromSeconds(Cell.IsLab ? 120 : 30);

    /// <summary>How long something that must not happen is given to happen.</summary>
    public static TimeSpan Absence { get; } = TimeSpan.FromMilliseconds(Cell.IsLab ? 1000 : 150);

    public static Task InTime(this Task task, [CallerArgumentExpression(nameof(task))] string what = "") => WithinAsync(task, Wait, what);

    public static async Task<T> InTime<T>(this Task<T> task, [CallerArgumentExpression(nameof(task))] string what = "")
    {
        await ((Task)task).InTime(what);
        return await task;
    }

    /// <summary>With a limit of its own.</summary>
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

    /// <summary>Runs blocking code on a thread of its own.</summary>
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
