using System.Net.Security;
using System.Security.Authentication;
using KernelTls.LoadTest.Report;
using KernelTls.LoadTest.Running;

namespace KernelTls.LoadTest.Tls;

/// <summary>
/// Counts the actual TLS properties of the connections of a run, as the connections report them. A run is over when no
/// connection has been open for a while. The next connection then begins a new run. Therefore a server that runs longer
/// than its clients reports the last run. This class is thread-safe.
/// </summary>
internal sealed class ConnectionTally
{
    /// <summary>Describes a connection of the stock classes.</summary>
    public const string Stock = "stock";

    /// <summary>Describes a connection without TLS.</summary>
    public const string None = "none";

    private static readonly TimeSpan s_interval = TimeSpan.FromSeconds(1);

    private readonly Lock _lock = new();
    private readonly Dictionary<string, int> _offloads = [];
    private readonly Dictionary<string, int> _negotiated = [];
    private long _count;
    private long _inKernel;
    private long _open;
    private long _countOfLastLook;
    private bool _isOver;
    private int _run;

    /// <summary>Gets the number of the run, from 0.</summary>
    public int Run
    {
        get
        {
            lock (_lock)
            {
                return _run;
            }
        }
    }

    /// <summary>Adds a connection that has completed its handshake or that does not use TLS.</summary>
    public void Add(Stream stream)
    {
        if (stream is SslStream tls)
        {
            Add((tls as KtlsStream)?.Offload, tls.SslProtocol, tls.NegotiatedCipherSuite);
        }
        else
        {
            AddPlain();
        }
    }

    public void Add(KtlsOffload? offload, SslProtocols protocol, TlsCipherSuite cipherSuite)
    {
        Count(offload?.ToString() ?? Stock, $"{protocol} {cipherSuite}", offload is { IsComplete: true });
    }

    public void AddPlain() => Count(None, None, isInKernel: false);

    /// <summary>Records that a connection which was added has ended. Only servers have to call this method.</summary>
    public void End()
    {
        lock (_lock)
        {
            _open--;
        }
    }

    /// <summary>
    /// Checks whether the run is over: no connection is open, and none was added since the last check.
    /// </summary>
    public void Look()
    {
        lock (_lock)
        {
            _isOver |= _open == 0 && _count > 0 && _count == _countOfLastLook;
            _countOfLastLook = _count;
        }
    }

    public void AddTo(Results results)
    {
        lock (_lock)
        {
            results.Add(Metrics.Connections, _count);
            results.Add(Metrics.KernelConnections, _inKernel);
            results.Add(Metrics.OtherConnections, _count - _inKernel);
            results.Add(Metrics.Offload, Describe(_offloads));
            results.Add(Metrics.Negotiated, Describe(_negotiated));
        }
    }

    /// <summary>
    /// Reports the results of a server whose agent stops listening before it stops the server. The method reports once
    /// a second while the server runs. If there was no listener, it reports at the end.
    /// </summary>
    /// <param name="work">What the server does.</param>
    /// <param name="addMore">A function that adds further results of the server.</param>
    /// <param name="cancellationToken">A token that stops the server.</param>
    public async Task TellWhileAsync(WorkMeter work, Action<Results>? addMore, CancellationToken cancellationToken)
    {
        bool heard = false;
        using PeriodicTimer timer = new(s_interval);
        try
        {
            while (await timer.WaitForNextTickAsync(cancellationToken))
            {
                Look();
                work.Look(Run);
                heard |= Collect(work, addMore).TellListener();
            }
        }
        catch (OperationCanceledException)
        {
            if (!heard)
            {
                Collect(work, addMore).Tell();
            }
        }
    }

    private Results Collect(WorkMeter work, Action<Results>? addMore)
    {
        Results results = new();
        work.AddTo(results);
        addMore?.Invoke(results);
        AddTo(results);
        results.AddEnvironment();
        return results;
    }

    private void Count(string offload, string negotiated, bool isInKernel)
    {
        lock (_lock)
        {
            if (_isOver)
            {
                _isOver = false;
                _run++;
                _offloads.Clear();
                _negotiated.Clear();
                _count = 0;
                _inKernel = 0;
            }

            _offloads[offload] = _offloads.GetValueOrDefault(offload) + 1;
            _negotiated[negotiated] = _negotiated.GetValueOrDefault(negotiated) + 1;
            _count++;
            _open++;
            _inKernel += isInKernel ? 1 : 0;
        }
    }

    /// <summary>
    /// Returns the only kind if all connections are alike. Otherwise, returns each kind with its count.
    /// </summary>
    private static string Describe(Dictionary<string, int> kinds)
    {
        KeyValuePair<string, int>[] all = [.. kinds.OrderByDescending(kind => kind.Value)];
        return all.Length == 1 ? all[0].Key : string.Join("; ", all.Select(kind => $"{kind.Value} x {kind.Key}"));
    }
}
