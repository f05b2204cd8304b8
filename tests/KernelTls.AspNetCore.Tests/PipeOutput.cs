using System.Buffers;
using System.IO.Pipelines;
using System.Net.Security;
using System.Security.Authentication;
using KernelTls.AspNetCore.Tls;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>A writer over the server's stream of a pair.</summary>
internal sealed class PipeOutput : IAsyncDisposable
{
    private readonly TlsPair _pair;

    private PipeOutput(TlsPair pair)
    {
        _pair = pair;
        Writer = new TlsPipeWriter((KtlsStream)pair.Server, Pool, Failures.Add);
    }

    public CountingPool Pool { get; } = new();

    public List<Exception> Failures { get; } = [];

    public TlsPipeWriter Writer { get; }

    public SslStream Client => _pair.Client;

    public static async Task<PipeOutput> CreateAsync(TlsMode mode)
    {
        TlsPair pair = await TlsPair.ConnectAsync(TlsMode.Stock, mode, SslProtocols.Tls13);
        pair.ShrinkBuffers();
        return new PipeOutput(pair);
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

    /// <summary>By the calling thread, in a response that the socket has room for.</summary>
    public long AllocatedByResponse(int size)
    {
        long before = GC.GetAllocatedBytesForCurrentThread();
        Write(0, size);
        Task<FlushResult>? waiting = Completed(Writer.FlushAsync());
        long allocated = GC.GetAllocatedBytesForCurrentThread() - before;
        Assert.Null(waiting);
        return allocated;

        static Task<FlushResult>? Completed(ValueTask<FlushResult> flush) => flush.IsCompletedSuccessfully ? null : flush.AsTask();
    }

    /// <summary>The same by the stream, from segments that are there.</summary>
    public long AllocatedByWrite(int size)
    {
        CancellationToken none = CancellationToken.None;
        OutputSegment? head = null;
        OutputSegment? tail = null;
        for (int done = 0; done < size;)
        {
            OutputSegment next = new();
            next.Rent(Pool, 0);
            next.Advance(Math.Min(OutputSegment.BlockSize, size - done));
            next.Seal(done);
            tail?.Append(next);
            (head, tail) = (head ?? next, next);
            done += next.Length;
        }

        ReadOnlySequence<byte> segments = new(head!, 0, tail!, tail!.Length);
        long before = GC.GetAllocatedBytesForCurrentThread();
        Task? waiting = Completed(((KtlsStream)_pair.Server).WriteAsync(segments, none));
        long allocated = GC.GetAllocatedBytesForCurrentThread() - before;
        Assert.Null(waiting);
        for (OutputSegment? segment = head; segment is not null; segment = tail)
        {
            tail = segment.NextSegment;
            segment.Return();
        }

        return allocated;

        static Task? Completed(ValueTask write) => write.IsCompletedSuccessfully ? null : write.AsTask();
    }

    public void ClientSocketClose() => _pair.ClientSocket.Close(0);

    public ValueTask DisposeAsync() => _pair.DisposeAsync();
}
