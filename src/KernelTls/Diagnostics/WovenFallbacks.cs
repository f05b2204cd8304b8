using System.Runtime.CompilerServices;

namespace KernelTls.Diagnostics;

/// <summary>
/// Collects the streams that keep woven libraries from kernel TLS in this process, each once, for the log of applications that have one.
/// Thread-safe.
/// </summary>
internal static class WovenFallbacks
{
    /// <summary>The number of streams after which no more are collected. A library has one or two.</summary>
    private const int Capacity = 32;

    private static readonly Lock s_lock = new();
    private static readonly List<WovenFallback> s_all = [];
    private static TaskCompletionSource s_added = new(TaskCreationOptions.RunContinuationsAsynchronously);

    /// <summary>Adds a stream, unless it is known.</summary>
    public static void Add(string library, string stream)
    {
        WovenFallback fallback = new(library, stream);
        TaskCompletionSource added;
        lock (s_lock)
        {
            if (s_all.Count == Capacity || s_all.Contains(fallback))
            {
                return;
            }

            s_all.Add(fallback);
            added = s_added;
            s_added = new(TaskCreationOptions.RunContinuationsAsynchronously);
        }

        added.SetResult();
    }

    /// <summary>Returns the streams of the past and, as they are added, those of the future. Does not end before it is canceled.</summary>
    public static async IAsyncEnumerable<WovenFallback> WatchAsync([EnumeratorCancellation] CancellationToken cancellationToken)
    {
        for (int next = 0; ;)
        {
            WovenFallback[] more;
            Task added;
            lock (s_lock)
            {
                more = [.. s_all.Skip(next)];
                added = s_added.Task;
            }

            foreach (WovenFallback fallback in more)
            {
                yield return fallback;
            }

            next += more.Length;
            await added.WaitAsync(cancellationToken).ConfigureAwait(false);
        }
    }
}
