using System.Text;

namespace KernelTls.LoadTest.Streams;

/// <summary>
/// Remembers the connections of a run that failed at the server. A client asks for them at its end, because crank ignores how a server
/// ends. This class is thread-safe.
/// </summary>
internal sealed class FailedConnections
{
    private readonly Lock _lock = new();
    private string _first = "";
    private long _count;
    private int _run;

    /// <param name="run">The number of the run. Another number than before begins a new run.</param>
    /// <param name="error">The description of the failure.</param>
    public void Add(int run, string error)
    {
        lock (_lock)
        {
            Begin(run);
            _first = _count++ == 0 ? error : _first;
        }
    }

    public long CountIn(int run)
    {
        lock (_lock)
        {
            Begin(run);
            return _count;
        }
    }

    /// <summary>Returns the answer to a client: a description in UTF-8, or nothing if no connection failed.</summary>
    public byte[] Tell(int run)
    {
        lock (_lock)
        {
            Begin(run);
            return _count == 0 ? [] : Encoding.UTF8.GetBytes($"connections that failed at the server: {_count}, the first: {_first}");
        }
    }

    private void Begin(int run)
    {
        if (run != _run)
        {
            (_run, _count, _first) = (run, 0, "");
        }
    }
}
