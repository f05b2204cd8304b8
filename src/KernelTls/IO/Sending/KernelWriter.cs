using System.Buffers;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>Writes data to a socket on which the kernel encrypts. The caller must have the turn of the gate.</summary>
internal sealed class KernelWriter(Socket socket)
{
    /// <summary>Number of segments that one call takes.</summary>
    private const int MaxSegments = 64;

    private readonly SafeSocketHandle _handle = socket.SafeHandle;
    private SendWatch? _watch;

    /// <summary>Writes all of <paramref name="data"/>, blocking; the socket's SendTimeout limits each wait.</summary>
    public void Write(ReadOnlySpan<byte> data)
    {
        data = data[WriteNow(data)..];
        if (data.IsEmpty)
        {
            return;
        }

        SendWatch watch = StartWatch();
        try
        {
            while (!data.IsEmpty)
            {
                int sent = socket.Send(data, SocketFlags.None, out SocketError error);
                if (error != SocketError.Success)
                {
                    throw TlsErrors.Socket(TlsErrors.CannotWrite, error);
                }

                data = data[sent..];
            }
        }
        finally
        {
            watch.Stop();
        }
    }

    /// <summary>Writes all of <paramref name="data"/>, waiting for room by .NET's own send.</summary>
    public ValueTask<int> WriteAsync(ReadOnlyMemory<byte> data, CancellationToken cancellationToken)
    {
        ValueTask<int> sending = socket.SendAsync(data, SocketFlags.None, cancellationToken);
        return sending.IsCompleted ? sending : WatchAsync(sending, StartWatch());
    }

    /// <summary>Writes as much as there is room for, without waiting. Returns how much that was.</summary>
    public unsafe int WriteNow(ReadOnlySpan<byte> data)
    {
        long sent;
        int errno;
        fixed (byte* bytes = data)
        {
            Blob segment = new() { Data = bytes, Length = data.Length };
            errno = KtlsNative.KtlsNative_SocketSend(_handle, &segment, 1, &sent);
        }

        return (int)SentOf(errno, sent);
    }

    /// <summary>As <see cref="WriteNow(ReadOnlySpan{byte})"/>, of the first segments, which share full records.</summary>
    /// <param name="data">The segments.</param>
    /// <param name="offered">Receives the number of bytes that were tried.</param>
    public unsafe long WriteNow(in ReadOnlySequence<byte> data, out long offered)
    {
        PinnedSegments pins = default;
        Blob* blobs = stackalloc Blob[MaxSegments];
        int count = 0;
        offered = 0;
        long sent;
        int errno;
        try
        {
            foreach (ReadOnlyMemory<byte> segment in data)
            {
                if (segment.IsEmpty)
                {
                    continue;
                }

                pins[count] = segment.Pin();
                blobs[count] = new Blob { Data = (byte*)pins[count].Pointer, Length = segment.Length };
                offered += segment.Length;
                if (++count == MaxSegments)
                {
                    break;
                }
            }

            errno = KtlsNative.KtlsNative_SocketSend(_handle, blobs, count, &sent);
        }
        finally
        {
            for (int i = 0; i < count; i++)
            {
                pins[i].Dispose();
            }
        }

        return SentOf(errno, sent);
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private static async ValueTask<int> WatchAsync(ValueTask<int> sending, SendWatch watch)
    {
        try
        {
            return await sending.ConfigureAwait(false);
        }
        finally
        {
            watch.Stop();
        }
    }

    private SendWatch StartWatch()
    {
        _watch ??= new SendWatch(socket);
        _watch.Start();
        return _watch;
    }

    private static long SentOf(int errno, long sent) => errno switch
    {
        0 => sent,
        Errno.Again => 0,
        _ => throw TlsErrors.Socket(TlsErrors.CannotWrite, SocketReceiveResult.ErrorOf(errno)),
    };

    [InlineArray(MaxSegments)]
    private struct PinnedSegments
    {
        private MemoryHandle _first;
    }
}
