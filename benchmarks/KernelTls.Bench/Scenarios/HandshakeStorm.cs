using System.Diagnostics;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Scenarios;

/// <summary>
/// Opens many connections from HttpClient to Kestrel at once, each for one request, while another client sends its requests on a
/// connection that was open before. An operation is one of the new connections. The times are those of the other client's requests.
/// </summary>
internal sealed class HandshakeStorm : ConcurrentExchange
{
    private readonly HttpClient _established;
    private readonly byte[] _buffer = new byte[BufferSize];

    /// <param name="mode">The mode of all connections.</param>
    /// <param name="certificates">The certificates.</param>
    /// <param name="kind">The requests. Its concurrency is the number of connections.</param>
    public HandshakeStorm(Mode mode, BenchCertificates certificates, HttpExchangeKind kind)
        : base(mode, certificates, kind with { Closes = true }, kind.Concurrency)
    {
        _established = CreateClient(mode, kind);
    }

    public override int WarmUpRounds => 5;

    public override async Task PrepareAsync()
    {
        await base.PrepareAsync();
        BeginRound(connections: 1);
        await RequestAsync(_established, _buffer);
        Verify();
    }

    public override async Task RunAsync(int operations)
    {
        using CancellationTokenSource over = new();
        Task asking = AskUntilAsync(over.Token);
        try
        {
            await RunAsync(operations, times: null);
        }
        finally
        {
            await over.CancelAsync();
        }

        await asking;
    }

    public override async ValueTask DisposeAsync()
    {
        _established.Dispose();
        await base.DisposeAsync();
    }

    private async Task AskUntilAsync(CancellationToken over)
    {
        long begun = Stopwatch.GetTimestamp();
        while (!over.IsCancellationRequested)
        {
            await RequestAsync(_established, _buffer);
            KeepTime(ref begun);
        }
    }
}
