using System.Diagnostics;
using System.Net;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Servers;

namespace KernelTls.Bench.Scenarios;

/// <summary>
/// Sends requests from HttpClient to nginx with a constant number of requests in progress. Only the client is in this process.
/// </summary>
internal sealed class NginxLoad : Scenario
{
    private const int BufferSize = 64 * 1024;

    private readonly Mode _mode;
    private readonly ServedFiles _files;
    private readonly HttpExchangeKind _kind;
    private readonly HttpClient _client;
    private readonly byte[] _body;
    private readonly byte[][] _buffers;
    private ServerProcess? _server;
    private Uri? _target;
    private int _left;

    public NginxLoad(Mode mode, ServedFiles files, HttpExchangeKind kind, int operationsPerRound)
    {
        _mode = mode;
        _files = files;
        _kind = kind;
        _client = HttpExchange.CreateClient(mode, kind);
        _body = new byte[kind.RequestSize];
        _buffers = [.. Enumerable.Range(0, kind.Concurrency).Select(_ => new byte[BufferSize])];
        OperationsPerRound = operationsPerRound;
    }

    public override int OperationsPerRound { get; }

    public override int Concurrency => _kind.Concurrency;

    /// <summary>Starts the server, and verifies by one request that the client's end is in its mode.</summary>
    public override async Task PrepareAsync()
    {
        _server = await ServerProcess.StartAsync(ModeTable.Nginx, _files, upstream: null);
        string path = _kind.RequestSize > 0 ? NginxServer.UploadPath : $"/{_kind.ResponseSize}";
        _target = new Uri($"https://{BenchCertificates.Host}:{_server.Port}{path}");
        KernelSockets before = KernelSockets.Read();
        await RequestAsync(_buffers[0]);
        _mode.Verify(KernelSockets.Read().Since(before), connections: 1);
    }

    public override async Task RunAsync(int operations)
    {
        _left = operations;
        TimeSpan[]? times = Times is null ? null : new TimeSpan[operations];
        await Task.WhenAll(_buffers.Select(buffer => RequestManyAsync(buffer, times)));
        if (times is not null)
        {
            Times!.AddRange(times);
        }
    }

    public override ValueTask DisposeAsync()
    {
        _client.Dispose();
        _server?.Dispose();
        _files.Dispose();
        return ValueTask.CompletedTask;
    }

    private async Task RequestManyAsync(byte[] buffer, TimeSpan[]? times)
    {
        for (int operation; (operation = Interlocked.Decrement(ref _left)) >= 0;)
        {
            long begun = Stopwatch.GetTimestamp();
            await RequestAsync(buffer);
            if (times is not null)
            {
                times[operation] = Stopwatch.GetElapsedTime(begun);
            }
        }
    }

    private async Task RequestAsync(byte[] buffer)
    {
        using HttpRequestMessage request = new(_kind.RequestSize > 0 ? HttpMethod.Post : HttpMethod.Get, _target)
        {
            Version = _kind.Version,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Content = _kind.RequestSize > 0 ? new ByteArrayContent(_body) : null,
        };
        using HttpResponseMessage response = await _client.SendAsync(request, HttpCompletionOption.ResponseHeadersRead);
        if (response.StatusCode != HttpStatusCode.OK || response.Version != _kind.Version)
        {
            throw new BenchFailedException($"the answer is {response.StatusCode} by HTTP/{response.Version}");
        }

        await HttpExchange.ExpectAsync(await response.Content.ReadAsStreamAsync(), buffer, _kind.ResponseSize);
    }
}
