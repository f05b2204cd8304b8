using System.Collections.Concurrent;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Tells what .NET's Socket has no operation for. One epoll set and one thread serve the whole process, made when somebody asks
/// first. Thread-safe.
/// </summary>
internal static class SocketPoller
{
    private static readonly Lazy<int> s_poller = new(Start);
    private static readonly ConcurrentDictionary<long, Action<Exception?>> s_reports = new();
    private static long s_lastToken;

    /// <summary>The epoll set, for the calls that put a socket into it.</summary>
    public static int Descriptor => s_poller.Value;

    /// <summary>Returns a token for <paramref name="report"/>, which is called once, on the poller's thread: it must not wait.</summary>
    public static long Expect(Action<Exception?> report)
    {
        long token = Interlocked.Increment(ref s_lastToken);
        s_reports[token] = report;
        return token;
    }

    /// <summary>The report is not wanted any more; one that is under way may still come.</summary>
    public static void Forget(long token) => s_reports.TryRemove(token, out _);

    private static unsafe int Start()
    {
        int created;
        int errno = KtlsNative.KtlsNative_PollerCreate(&created);
        if (errno != 0)
        {
            throw TlsErrors.Call("creating an epoll set", errno);
        }

        int poller = created;
        new Thread(() => Serve(poller)) { IsBackground = true, Name = "KernelTls poller" }.Start();
        return poller;
    }

    private static unsafe void Serve(int poller)
    {
        const int Capacity = 64;
        long* tokens = stackalloc long[Capacity];
        while (true)
        {
            int count;
            int errno = KtlsNative.KtlsNative_PollerWait(poller, tokens, Capacity, &count);
            if (errno != 0)
            {
                // Cannot happen with a valid epoll descriptor; if it does, nobody may wait forever.
                Exception failure = TlsErrors.Call("waiting on the epoll set", errno);
                foreach (Action<Exception?> report in s_reports.Values)
                {
                    report(failure);
                }

                return;
            }

            for (int i = 0; i < count; i++)
            {
                if (s_reports.TryRemove(tokens[i], out Action<Exception?>? report))
                {
                    report(null);
                }
            }
        }
    }
}
