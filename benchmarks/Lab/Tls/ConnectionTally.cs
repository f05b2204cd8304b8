using System.Collections.Concurrent;
using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Lab.Report;

namespace KernelTls.Lab.Tls;

/// <summary>What the connections of a process really had, by their own word.</summary>
internal sealed class ConnectionTally
{
    /// <summary>A connection of the stock classes.</summary>
    public const string Stock = "stock";

    /// <summary>A connection without TLS.</summary>
    public const string None = "none";

    private static readonly TimeSpan s_interval = TimeSpan.FromSeconds(1);

    private readonly ConcurrentDictionary<string, int> _offloads = new();
    private readonly ConcurrentDictionary<string, int> _negotiated = new();
    private long _count;
    private long _inKernel;

    /// <summary>A connection that has shaken hands, or has no TLS.</summary>
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
        if (offload is { IsComplete: true })
        {
            Interlocked.Increment(ref _inKernel);
        }

        Count(offload?.ToString() ?? Stock, $"{protocol} {cipherSuite}");
    }

    public void AddPlain() => Count(None, None);

    public void AddTo(Results results)
    {
        results.Add(Metrics.Connections, Interlocked.Read(ref _count));
        results.Add(Metrics.KernelConnections, Interlocked.Read(ref _inKernel));
        results.Add(Metrics.Offload, Describe(_offloads));
        results.Add(Metrics.Negotiated, Describe(_negotiated));
    }

    /// <summary>
    /// For a server, whose agent stops listening before it stops the server: tells once a second, for as long as the server
    /// runs, and at its end if nobody has listened.
    /// </summary>
    /// <param name="addMore">What else the server has to tell.</param>
    /// <param name="cancellationToken">The end.</param>
    public async Task TellWhileAsync(Action<Results>? addMore, CancellationToken cancellationToken)
    {
        bool heard = false;
        using PeriodicTimer timer = new(s_interval);
        try
        {
            while (await timer.WaitForNextTickAsync(cancellationToken))
            {
                heard |= Collect(addMore).TellListener();
            }
        }
        catch (OperationCanceledException)
        {
            if (!heard)
            {
                Collect(addMore).Tell();
            }
        }
    }

    private Results Collect(Action<Results>? addMore)
    {
        Results results = new();
        addMore?.Invoke(results);
        AddTo(results);
        results.AddEnvironment();
        return results;
    }

    private void Count(string offload, string negotiated)
    {
        _offloads.AddOrUpdate(offload, 1, (_, n) => n + 1);
        _negotiated.AddOrUpdate(negotiated, 1, (_, n) => n + 1);
        Interlocked.Increment(ref _count);
    }

    /// <summary>The one kind there should be; else each with its number.</summary>
    private static string Describe(ConcurrentDictionary<string, int> kinds)
    {
        KeyValuePair<string, int>[] all = [.. kinds.OrderByDescending(kind => kind.Value)];
        return all.Length == 1 ? all[0].Key : string.Join("; ", all.Select(kind => $"{kind.Value} x {kind.Key}"));
    }
}
