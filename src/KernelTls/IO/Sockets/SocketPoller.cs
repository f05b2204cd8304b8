using System.Collections.Concurrent;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>An epoll instance for readiness events that Socket does not expose. Thread-safe.</summary>
/// <remarks>Created on first use together with one background thread. Both live until the process exits.</remarks>
internal sealed class SocketPoller
{
    private const int NotStarted = -1;

    private readonly Lock _lock = new();
    private readonly ConcurrentDictionary<long, Action<Exception?>> _reports = new();
    private int _poller = NotStarted;
    private long _lastToken;

    /// <summary>Gets the instance that serves the whole process.</summary>
    public static SocketPoller Shared { get; } = new();

    /// <summary>Gets the descriptor of the epoll instance, for the calls that register a socket.</summary>
    /// <remarks>
    /// If it cannot be created, for example because the process is out of descriptors for a while, the next call tries
    /// again.
    /// </remarks>
    /// <exception cref="IOException">The instance could not be created.</exception>
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

    /// <summary>
    /// Returns a token for <paramref name="report"/>, which is called once, on the poller's thread, and must not block.
    /// </summary>
    public long Register(Action<Exception?> report)
    {
        long token = Interlocked.Increment(ref _lastToken);
        _reports[token] = report;
        return token;
    }

    /// <summary>
    /// Removes a report, and returns false if it was already removed or called. A report that is in progress may still be called.
    /// </summary>
    public bool Unregister(long token) => _reports.TryRemove(token, out _);

    private unsafe int Start()
    {
        int created;
        int errno = KtlsNative.KtlsNative_PollerCreate(&created);
        if (errno != 0)
        {
            throw TlsErrors.Call("creating an epoll set", errno);
        }

        int poller = created;

        // Unsafe: the thread serves the whole process and must not keep the ExecutionContext of the first caller.
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
                // Cannot happen with a valid epoll descriptor. If it does, no waiter may wait forever.
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
