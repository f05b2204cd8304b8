using System.Diagnostics;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Scenarios;

/// <summary>
/// Exchanges messages on one connection: the client sends 64 bytes, the server answers with the given number of bytes,
/// and the client reads all of them.
/// </summary>
/// <remarks>
/// Reads use separate loops, because ReadExactlyAsync of the base class would allocate, and allocations are counted.
/// </remarks>
internal class Exchange : StreamScenario
{
    private const int RequestSize = 64;
    private const int LargestRead = 64 * 1024;

    private readonly int _responseSize;
    private readonly byte[] _request = new byte[RequestSize];
    private readonly byte[] _requestRead = new byte[RequestSize];
    private readonly byte[] _response;
    private readonly byte[] _responseRead;
    private ConnectionPair? _pair;

    public Exchange(Mode mode, int responseSize, int operationsPerRound)
        : base(mode)
    {
        _responseSize = responseSize;
        _response = new byte[Math.Min(responseSize, LargestRead)];
        _responseRead = new byte[_response.Length];
        OperationsPerRound = operationsPerRound;
    }

    public override int OperationsPerRound { get; }

    public override async Task PrepareAsync() => _pair = await OpenVerifiedAsync();

    public override async Task RunAsync(int operations)
    {
        Task serving = Task.Run(() => ServeAsync(_pair!.Server, operations));
        await RequestAsync(_pair!.Client, operations);
        await serving;
    }

    protected virtual ValueTask RespondAsync(Stream server) => server.WriteAsync(_response);

    private async Task ServeAsync(Stream server, int operations)
    {
        for (int i = 0; i < operations; i++)
        {
            for (int received = 0; received < RequestSize;)
            {
                int count = await server.ReadAsync(_requestRead.AsMemory(received));
                received += count > 0 ? count : throw new BenchFailedException("the client's stream ended");
            }

            await RespondAsync(server);
        }
    }

    private async Task RequestAsync(Stream client, int operations)
    {
        long begun = Stopwatch.GetTimestamp();
        for (int i = 0; i < operations; i++)
        {
            await client.WriteAsync(_request);
            for (int received = 0; received < _responseSize;)
            {
                int count = await client.ReadAsync(_responseRead.AsMemory(0, Math.Min(_responseRead.Length, _responseSize - received)));
                received += count > 0 ? count : throw new BenchFailedException("the server's stream ended");
            }

            KeepTime(ref begun);
        }
    }

    public override ValueTask DisposeAsync()
    {
        _pair?.Client.Dispose();
        _pair?.Server.Dispose();
        return base.DisposeAsync();
    }
}
