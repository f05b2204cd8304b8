using System.Buffers;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using KernelTls.Interop;

namespace KernelTls.IO;

// What the kernel takes at once: one sendmsg, so that small segments share full records.
internal sealed partial class TlsSender
{
    /// <summary>As many segments as one call takes.</summary>
    private const int MaxSegments = 64;

    /// <summary>Sends all of <paramref name="data"/>.</summary>
    public ValueTask SendAsync(in ReadOnlySequence<byte> data, CancellationToken cancellationToken)
    {
        if (data.IsSingleSegment)
        {
            return SendAsync(data.First, cancellationToken);
        }

        Enter();
        if (cancellationToken.IsCancellationRequested)
        {
            ExitWrite();
            return ValueTask.FromCanceled(cancellationToken);
        }

        ReadOnlySequence<byte> rest = data;
        if (_kernel && _gate.Wait(0, CancellationToken.None))
        {
            try
            {
                if (_state == State.Open && Failure is null && _budget.Allow(data.Length) == data.Length)
                {
                    rest = SendReady(data);
                    if (rest.IsEmpty)
                    {
                        Leave(sent: true);
                        ExitWrite();
                        return default;
                    }
                }
            }
            catch (Exception e)
            {
                Leave(sent: false);
                ExitWrite();
                return ValueTask.FromException(Translate(e));
            }

            return SendRestAsync(rest, entered: true, cancellationToken);
        }

        return SendRestAsync(rest, entered: false, cancellationToken);
    }

    /// <summary>What of a write found no room, or has to wait for its turn or a new key, or is to be refused.</summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private async ValueTask SendRestAsync(ReadOnlySequence<byte> data, bool entered, CancellationToken cancellationToken)
    {
        try
        {
            if (!entered)
            {
                await _gate.WaitAsync(cancellationToken).ConfigureAwait(false);
            }

            bool sent = false;
            try
            {
                ThrowIfNotOpen();
                if (_kernel)
                {
                    await SendSegmentsAsync(data, cancellationToken).ConfigureAwait(false);
                }
                else if (data.IsSingleSegment)
                {
                    await SendPartsAsync(data.First, cancellationToken).ConfigureAwait(false);
                }
                else
                {
                    await WriteSegmentsAsync(data, cancellationToken).ConfigureAwait(false);
                }

                sent = true;
            }
            finally
            {
                Leave(sent);
            }
        }
        catch (Exception e) when (Translate(e) is var translated && translated != e)
        {
            throw translated;
        }
        finally
        {
            ExitWrite();
        }
    }

    private async ValueTask SendSegmentsAsync(ReadOnlySequence<byte> data, CancellationToken cancellationToken)
    {
        while (!data.IsEmpty)
        {
            // The socket has no room: .NET waits for it by sending the next segment, or 64 KiB of it; the rest shares records
            // again, unless an answer to the peer's KeyUpdate is due.
            SequencePosition position = data.Start;
            ReadOnlyMemory<byte> first;
            while (data.TryGet(ref position, out first) && first.IsEmpty)
            {
            }

            first = first[..(int)await AllowAsync(first.Length, cancellationToken).ConfigureAwait(false)];
            await _socket.SendAsync(first, SocketFlags.None, cancellationToken).ConfigureAwait(false);
            data = data.Slice(first.Length);
            if (!AnswerGoesFirst && _budget.Allow(data.Length) == data.Length)
            {
                data = SendReady(data);
            }
        }
    }

    /// <summary>For OpenSSL the segments are laid side by side in one buffer, so that they fill its records.</summary>
    private async ValueTask WriteSegmentsAsync(ReadOnlySequence<byte> data, CancellationToken cancellationToken)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(RecordBudget.RecordSize);
        try
        {
            while (!data.IsEmpty)
            {
                int length = (int)await AllowAsync(Math.Min(data.Length, RecordBudget.RecordSize), cancellationToken).ConfigureAwait(false);
                data.Slice(0, length).CopyTo(buffer);
                await WriteOpenSslAsync(buffer.AsMemory(0, length), cancellationToken).ConfigureAwait(false);
                data = data.Slice(length);
            }
        }
        finally
        {
            // After a failure OpenSSL is not called any more with what it may have seen of the buffer.
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }

    /// <summary>Sends what there is room for, without waiting; the rest comes back.</summary>
    private ReadOnlySequence<byte> SendReady(ReadOnlySequence<byte> data)
    {
        while (!data.IsEmpty)
        {
            long sent = SendOnce(data, out long offered);
            _budget.Take(sent);
            data = data.Slice(sent);
            if (sent < offered)
            {
                break;
            }
        }

        return data;
    }

    private unsafe long SendOnce(in ReadOnlySequence<byte> data, out long offered)
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

            errno = KtlsNative.KtlsNative_SocketSend(_connection.Socket, blobs, count, &sent);
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

    /// <summary>Sends what there is room for, without waiting; returns how much that was.</summary>
    private unsafe int SendReady(ReadOnlySpan<byte> data)
    {
        long sent;
        int errno;
        fixed (byte* bytes = data)
        {
            Blob segment = new() { Data = bytes, Length = data.Length };
            errno = KtlsNative.KtlsNative_SocketSend(_connection.Socket, &segment, 1, &sent);
        }

        return (int)SentOf(errno, sent);
    }

    private static long SentOf(int errno, long sent) => errno switch
    {
        0 => sent,
        Errno.Again => 0,
        _ => throw TlsErrors.Socket("Unable to write data to the transport connection", TlsErrors.ToSocketError(errno)),
    };

    [InlineArray(MaxSegments)]
    private struct PinnedSegments
    {
        private MemoryHandle _first;
    }
}
