using System.Diagnostics;
using KernelTls.Bench.Modes;
using Microsoft.AspNetCore.Http;

namespace KernelTls.Bench.Scenarios;

/// <summary>
/// Sends requests from HttpClient to Kestrel with a constant number of requests in progress. HTTP/2 uses one
/// connection. HTTP/1.1 uses as many connections as requests, or a new connection for each request.
/// </summary>
internal class ConcurrentExchange : HttpExchange
{
    private readonly HttpExchangeKind _kind;
    private readonly byte[][] _buffers;
    private int _open;
    private Gathering? _gathering;
    private TimeSpan[]? _times;
    private int _operations;
    private int _begun;

    public ConcurrentExchange(Mode mode, BenchCertificates certificates, HttpExchangeKind kind, int operationsPerRound)
        : base(mode, certificates, kind, operationsPerRound)
    {
        _kind = kind;
        _buffers = [.. Enumerable.Range(0, kind.Concurrency).Select(_ => new byte[BufferSize])];
    }

    public override int Concurrency => _kind.Concurrency;

    // About every second round collects garbage, which is 3 % of a request and nothing beside a handshake.
    public override int RoundsPerFigure => _kind.Closes ? 1 : 4;

    public override int? Port => Server.Port;

    public override int WarmUpRounds => _kind.Closes ? base.WarmUpRounds : 8;

    /// <summary>
    /// Sends one request and then all requests at once. The server answers none of them before it has received all, so
    /// the client has to open every connection.
    /// </summary>
    public override async Task PrepareAsync()
    {
        await base.PrepareAsync();
        _open = 1;
        await GatherAsync(Concurrency);
    }

    public override Task RunAsync(int operations) => RunAsync(operations, Times);

    /// <summary>Runs a round that adds the duration of each operation to <paramref name="times"/>, if it is not null.</summary>
    protected async Task RunAsync(int operations, List<TimeSpan>? times)
    {
        BeginRound(ConnectionsOf(operations));
        _operations = operations;
        _begun = 0;
        _times = times is null ? null : new TimeSpan[operations];
        await Task.WhenAll(_buffers.Select(RequestManyAsync));
        if (_times is not null)
        {
            times!.AddRange(_times);
        }
    }

    /// <summary>
    /// Sends requests that wait for each other at the server, so that all are in progress at the same time. With
    /// HTTP/1.1, the same number of connections is open afterwards.
    /// </summary>
    /// <param name="requests">The number of requests, which must exceed the previous number.</param>
    public async Task GatherAsync(int requests)
    {
        int connections = _kind.Version.Major == 2 ? 0 : _kind.Closes ? requests : requests - _open;
        _open = requests;
        BeginRound(connections);
        _gathering = new Gathering(requests);
        await Task.WhenAll(Enumerable.Range(0, requests).Select(i => RequestAsync(_buffers[i % _buffers.Length])))
            .InTime($"{requests} requests at the same time");
        _gathering = null;
        Verify();
    }

    /// <summary>Returns how many connections so many operations open.</summary>
    protected virtual int ConnectionsOf(int operations) => _kind.Closes ? operations : 0;

    /// <summary>
    /// Completes when all gathered requests have arrived, or at once if none are gathered.
    /// </summary>
    /// <remarks>
    /// The bodies have been read by then. Unread ones would use up the connection's flow-control window (RFC 9113,
    /// section 5.2), and HttpClient does not flush the HEADERS of a request whose body waits for the window, so the last
    /// requests would never arrive.
    /// </remarks>
    protected override Task ArriveAsync() => _gathering?.ArriveAsync() ?? Task.CompletedTask;

    private async Task RequestManyAsync(byte[] buffer)
    {
        for (int operation; (operation = Interlocked.Increment(ref _begun)) <= _operations;)
        {
            long begun = _times is null ? 0 : Stopwatch.GetTimestamp();
            await RequestAsync(buffer);
            if (_times is { } times)
            {
                times[operation - 1] = Stopwatch.GetElapsedTime(begun);
            }
        }
    }

    /// <summary>Represents requests that wait until the expected number has arrived.</summary>
    private sealed class Gathering(int expected)
    {
        private readonly TaskCompletionSource _complete = new(TaskCreationOptions.RunContinuationsAsynchronously);
        private int _missing = expected;

        public Task ArriveAsync()
        {
            if (Interlocked.Decrement(ref _missing) == 0)
            {
                _complete.SetResult();
            }

            return _complete.Task;
        }
    }
}
