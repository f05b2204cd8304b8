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

    public static async Task<PipeOutput> CreateAsync(TlsMode mode, bool shrink = true)
    {
        TlsPair pair = await TlsPair.ConnectAsync(TlsMode.Stock, mode, SslProtocols.Tls13);
        if (shrink)
        {
            pair.ShrinkBuffers();
        }

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

    public void ClientSocketClose() => _pair.ClientSocket.Close(0);

    public ValueTask DisposeAsync() => _pair.DisposeAsync();
}
