using System.Collections.Concurrent;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Tells what .NET's Socket has no operation for. One epoll set and one thread, made when somebody asks first, and for good.
/// Thread-safe.
/// </summary>
internal sealed class SocketPoller
{
    private const int NotStarted = -1;

    private readonly Lock _lock = new();
    private readonly ConcurrentDictionary<long, Action<Exception?>> _reports = new();
    private int _poller = NotStarted;
    private long _lastToken;

    /// <summary>The one that serves the whole process.</summary>
    public static SocketPoller Shared { get; } = new();

    /// <summary>
    /// The epoll set, for the calls that put a socket into it. Where none could be made (a process may be out of descriptors for
    /// a while), whoever asks next tries again.
    /// </summary>
    /// <exception cref="IOException">None could be made.</exception>
    public int Descriptor
    {
        get
        {
            int poller = Volatile.Read(ref _poller);
            if (poller != NotStarted)
            {
                return poller;
            }

            lock (_lock)
            {
                if (_poller == NotStarted)
                {
                    Volatile.Write(ref _poller, Start());
                }

                return _poller;
            }
        }
    }

    /// <summary>Returns a token for <paramref name="report"/>, which is called once, on the poller's thread: it must not wait.</summary>
    public long Expect(Action<Exception?> report)
    {
        long token = Interlocked.Increment(ref _lastToken);
        _reports[token] = report;
        return token;
    }

    /// <summary>The report is not wanted any more; one that is under way may still come.</summary>
    public void Forget(long token) => _reports.TryRemove(token, out _);

    private unsafe int Start()
    {
        int created;
        int errno = KtlsNative.KtlsNative_PollerCreate(&created);
        if (errno != 0)
        {
            throw TlsErrors.Call("creating an epoll set", errno);
        }

        int poller = created;

        // Unsafe: the thread serves the whole process, and must not keep the ExecutionContext of whoever came first.
        new Thread(() => Serve(poller)) { IsBackground = true, Name = "KernelTls poller" }.UnsafeStart();
        return poller;
    }

    private unsafe void Serve(int poller)
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
                foreach (Action<Exception?> report in _reports.Values)
                {
                    report(failure);
                }

                return;
            }

            for (int i = 0; i < count; i++)
            {
                if (_reports.TryRemove(tokens[i], out Action<Exception?>? report))
                {
                    report(null);
                }
            }
        }
    }
}
