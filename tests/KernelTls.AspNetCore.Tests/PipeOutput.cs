using System.IO.Pipelines;
using System.Net.Security;
using System.Security.Authentication;
using KernelTls.AspNetCore.Tls;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Creates a writer over the server's stream of a pair.</summary>
internal sealed class PipeOutput : IAsyncDisposable
{
    /// <summary>The threshold of the default transport.</summary>
    public const int PauseThreshold = 64 * 1024;

    public const int FillStep = 8_000;

    private readonly TlsPair _pair;
    private readonly TaskCompletionSource _failed = new(TaskCreationOptions.RunContinuationsAsynchronously);

    private PipeOutput(TlsPair pair, long pauseThreshold)
    {
        _pair = pair;
        Writer = new TlsPipeWriter((KtlsStream)pair.Server, Pool, pauseThreshold, failure =>
        {
            Failures.Add(failure);
            _failed.TrySetResult();
        });
    }

    public CountingPool Pool { get; } = new();

    public List<Exception> Failures { get; } = [];

    /// <summary>Gets a task that completes with the first failure.</summary>
    public Task Failed => _failed.Task;

    public TlsPipeWriter Writer { get; }

    public SslStream Client => _pair.Client;

    /// <summary>Gets the number of bytes that the client's socket has received.</summary>
    public long ReceivedBySocket => TcpInfo.BytesReceived(_pair.ClientSocket);

    public static async Task<PipeOutput> CreateAsync(TlsMode mode, bool shrink = true, long pauseThreshold = PauseThreshold)
    {
        TlsPair pair = await TlsPair.ConnectAsync(TlsMode.Stock, mode, SslProtocols.Tls13);
        if (shrink)
        {
            pair.ShrinkBuffers();
        }

        return new PipeOutput(pair, pauseThreshold);
    }

    public void Write(long position, int count)
    {
        for (int done = 0; done < count;)
        {
            Span<byte> span = Writer.GetSpan();
            int length = Math.Min(span.Length, count - done);
            Pattern.At(position + done, length).Span.CopyTo(span);
            Writer.Advance(length);
            done += length;
        }
    }

    /// <summary>
    /// Writes data in pieces of varying lengths and flushes each, until the client has received everything. The lengths
    /// begin with 1, and each is (<paramref name="factor"/> times the previous one) modulo <paramref name="modulus"/>, plus 1.
    /// </summary>
    public async Task SendAsync(int size, int factor, int modulus)
    {
        Task<int> receiving = Pattern.ReceiveAsync(Client, size);
        int written = 0;
        for (int length = 1; written < size; length = (length * factor % modulus) + 1)
        {
            int count = Math.Min(length, size - written);
            Write(written, count);
            written += count;
            Assert.False((await Writer.FlushAsync().InTime()).IsCompleted);
            Assert.Equal(0, Writer.UnflushedBytes);
        }

        await receiving.InTime();
        await Writer.DrainAsync().InTime();
        Assert.Empty(Failures);
        Assert.Equal(0, Pool.Rented);
    }

    /// <summary>
    /// Writes and flushes until a send waits for the reader, so that later flushes gather behind it. Returns the number
    /// of bytes written, of which at most <see cref="FillStep"/> are not sent.
    /// </summary>
    public async Task<int> FillAsync()
    {
        int written = 0;
        do
        {
            Writer.OnReceived();
            Write(written, FillStep);
            written += FillStep;
            await Writer.FlushAsync().InTime();
            if (Pool.Rented > 0)
            {
                // The send must still be waiting after a while, because data in transit to the reader's buffer may have
                // freed space.
                await Task.Delay(Limits.Absence);
            }
        }
        while (Pool.Rented == 0);

        return written;
    }

    /// <summary>
    /// Returns the bytes that the calling thread allocates in a response for which the socket has space.
    /// </summary>
    public long AllocatedByResponse(int size)
    {
        long before = GC.GetAllocatedBytesForCurrentThread();
        Write(0, size);
        Task<FlushResult>? waiting = Flush();
        long allocated = GC.GetAllocatedBytesForCurrentThread() - before;
        Assert.Null(waiting);
        return allocated;
    }

    /// <summary>Flushes. Returns null if the flush did not have to wait.</summary>
    public Task<FlushResult>? Flush()
    {
        return Waiting(Writer.FlushAsync());

        static Task<FlushResult>? Waiting(ValueTask<FlushResult> flush) => flush.IsCompletedSuccessfully ? null : flush.AsTask();
    }

    public void ClientSocketClose() => _pair.ClientSocket.Close(0);

    /// <summary>Closes the server's end as an abort does: first its socket, then its stream.</summary>
    public ValueTask AbortAsync()
    {
        _pair.ServerSocket.Close(0);
        return _pair.Server.DisposeAsync();
    }

    public ValueTask DisposeAsync() => _pair.DisposeAsync();
}
