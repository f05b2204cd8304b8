using System.Buffers;
using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using System.Threading.Tasks.Sources;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Gathers what is written in blocks of the connection's pool; a flush sends them all by one write of the stream, so that small
/// blocks share full records (RFC 8446, section 5.1). Back-pressure is that write: a flush completes when the socket has taken
/// everything.
/// </summary>
/// <remarks>
/// A flush that is cancelled, by its token or <see cref="CancelPendingFlush"/>, leaves the write going, since a part of a record
/// cannot be taken back; what is flushed later follows it. A write that failed ends the connection, and flushes complete with
/// <see cref="FlushResult.IsCompleted"/>, as on a pipe whose reader has gone. One thread at a time, apart from CancelPendingFlush.
/// A file is written like memory: <see cref="Announce"/>, GetMemory, Advance; the flush sends it in its place.
/// </remarks>
internal sealed partial class TlsPipeWriter : PipeWriter, IValueTaskSource<FlushResult>
{
    /// <summary>A response of 64 KiB, with its head.</summary>
    private const int MaxSpareSegments = 20;

    private readonly KtlsStream _stream;
    private readonly MemoryPool<byte> _pool;
    private readonly Action<Exception> _failed;
    private readonly Stack<OutputSegment> _spare = new();

    // Written and not flushed.
    private OutputSegments _unsent;

    // Guards what follows. Idle → Sending → Idle; what is flushed while a write goes on queues up.
    private readonly Lock _lock = new();
    private OutputSegments _queued;
    private ValueTask _sending;
    private CancellationTokenRegistration _cancellation;
    private ManualResetValueTaskSourceCore<FlushResult> _flush;
    private bool _isSending;
    private bool _isWaiting;
    private bool _cancelNext;
    private bool _isBroken;
    private bool _isCompleted;

    public TlsPipeWriter(KtlsStream stream, MemoryPool<byte> pool, Action<Exception> failed)
    {
        _stream = stream;
        _pool = pool;
        _failed = failed;
    }

    public override bool CanGetUnflushedBytes => true;

    public override long UnflushedBytes => _unsent.Bytes;

    public override Memory<byte> GetMemory(int sizeHint = 0)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(sizeHint);
        if (_isCompleted)
        {
            throw new InvalidOperationException("Writing is not allowed after the writer was completed.");
        }

        if (_announced is { } file)
        {
            return file.Memory;
        }

        if (_unsent.Tail is { } tail && tail.Free.Length >= Math.Max(sizeHint, 1))
        {
            return tail.Free;
        }

        OutputSegment segment = NewSegment();
        segment.Rent(_pool, sizeHint);
        _unsent.Append(segment);
        return segment.Free;
    }

    public override Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;

    public override void Advance(int bytes)
    {
        if (_announced is { } file)
        {
            AdvanceBy(file, bytes);
            return;
        }

        if ((uint)bytes > (uint)(_unsent.Tail?.Free.Length ?? 0))
        {
            throw new ArgumentOutOfRangeException(nameof(bytes), bytes, "More than GetMemory gave.");
        }

        if (bytes > 0)
        {
            _unsent.Advance(bytes);
        }
    }

    public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default)
    {
        if (cancellationToken.IsCancellationRequested)
        {
            return ValueTask.FromCanceled<FlushResult>(cancellationToken);
        }

        lock (_lock)
        {
            if (_isWaiting)
            {
                throw new InvalidOperationException("A flush is pending.");
            }

            if (_cancelNext)
            {
                _cancelNext = false;
                return ValueTask.FromResult(new FlushResult(isCanceled: true, isCompleted: _isBroken));
            }

            if (_isBroken)
            {
                Release(ref _unsent);
                return ValueTask.FromResult(new FlushResult(isCanceled: false, isCompleted: true));
            }

            if (_isSending)
            {
                _queued.Append(ref _unsent);
                return new ValueTask<FlushResult>(this, Wait(cancellationToken));
            }

            if (_unsent.Bytes == 0)
            {
                Release(ref _unsent);
                return default;
            }

            _isSending = true;
        }

        OutputSegments segments = _unsent;
        _unsent = default;
        ValueTask write = WriteAsync(segments);
        if (write.IsCompletedSuccessfully)
        {
            write.GetAwaiter().GetResult();
            lock (_lock)
            {
                Release(ref segments);
                _isSending = false;
            }

            return default;
        }

        short version;
        lock (_lock)
        {
            version = Wait(cancellationToken);
        }

        // The last one has ended; taking its result lets its state be used again.
        if (_sending.IsCompleted)
        {
            _sending.GetAwaiter().GetResult();
        }

#pragma warning disable CA2012 // Awaited once: here, when it is replaced, or when the connection closes.
        _sending = SendAsync(write, segments);
#pragma warning restore CA2012
        return new ValueTask<FlushResult>(this, version);
    }

    public override void CancelPendingFlush()
    {
        lock (_lock)
        {
            if (!_isWaiting)
            {
                _cancelNext = true;
                return;
            }

            _isWaiting = false;
        }

        // Whoever cancels may hold locks that the one who waits wants.
        ThreadPool.UnsafeQueueUserWorkItem(
            static w => w.EndWait(new FlushResult(isCanceled: true, isCompleted: false)), this, preferLocal: false);
    }

    /// <summary>What is not flushed yet is sent when the connection closes; with an exception it is dropped.</summary>
    public override void Complete(Exception? exception = null)
    {
        _isCompleted = true;
        if (exception is not null)
        {
            lock (_lock)
            {
                Release(ref _unsent);
            }
        }
    }

    /// <summary>Completes, and ends when everything is sent or the connection is broken.</summary>
    public async Task DrainAsync()
    {
        Complete();
        bool isWaiting;
        lock (_lock)
        {
            isWaiting = _isWaiting;
            _cancelNext = false;
        }

        if (!isWaiting)
        {
            await FlushAsync(CancellationToken.None).ConfigureAwait(false);
        }

        await _sending.ConfigureAwait(false);
        _sending = default;
        lock (_lock)
        {
            // Written while a flush was pending, and never flushed.
            Release(ref _unsent);
        }
    }

    FlushResult IValueTaskSource<FlushResult>.GetResult(short token) => _flush.GetResult(token);

    ValueTaskSourceStatus IValueTaskSource<FlushResult>.GetStatus(short token) => _flush.GetStatus(token);

    void IValueTaskSource<FlushResult>.OnCompleted(
        Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags) =>
        _flush.OnCompleted(continuation, state, token, flags);

    /// <summary>Sees a write through that had to wait, and sends what was flushed meanwhile.</summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private async ValueTask SendAsync(ValueTask write, OutputSegments segments)
    {
        while (true)
        {
            Exception? failure = null;
            try
            {
                await write.ConfigureAwait(false);
            }
            catch (Exception e)
            {
                failure = e;
            }

            bool isWaiting = false;
            lock (_lock)
            {
                Release(ref segments);
                if (failure is not null)
                {
                    _isBroken = true;
                    Release(ref _queued);
                }

                segments = _queued;
                _queued = default;
                if (segments.Bytes == 0)
                {
                    _isSending = false;
                    isWaiting = _isWaiting;
                    _isWaiting = false;
                }
            }

            if (failure is not null)
            {
                _failed(failure);
            }

            if (segments.Bytes == 0)
            {
                if (isWaiting)
                {
                    EndWait(new FlushResult(isCanceled: false, isCompleted: failure is not null));
                }

                return;
            }

            write = WriteAsync(segments);
        }
    }

    /// <summary>The write of the stream; what it throws at once, it throws when awaited.</summary>
    private ValueTask WriteAsync(in OutputSegments segments)
    {
        try
        {
            return segments.HasFiles
                ? WriteWithFilesAsync(segments.Head)
                : _stream.WriteAsync(segments.AsSequence(), CancellationToken.None);
        }
        catch (Exception e)
        {
            return ValueTask.FromException(e);
        }
    }

    private OutputSegment NewSegment()
    {
        lock (_lock)
        {
            return _spare.TryPop(out OutputSegment? spare) ? spare : new OutputSegment();
        }
    }

    /// <summary>From now on there is a flush that waits; returns the version of its task.</summary>
    private short Wait(CancellationToken cancellationToken)
    {
        _flush.Reset();
        _isWaiting = true;
        if (cancellationToken.CanBeCanceled)
        {
            _cancellation = cancellationToken.UnsafeRegister(
                static (w, token) => ((TlsPipeWriter)w!).CancelWait(token), this);
        }

        return _flush.Version;
    }

    private void CancelWait(CancellationToken cancellationToken)
    {
        lock (_lock)
        {
            if (!_isWaiting)
            {
                return;
            }

            _isWaiting = false;
        }

        ThreadPool.UnsafeQueueUserWorkItem(
            static s => s.Writer._flush.SetException(new OperationCanceledException(s.Token)),
            (Writer: this, Token: cancellationToken),
            preferLocal: false);
    }

    private void EndWait(FlushResult result)
    {
        _cancellation.Unregister();
        _cancellation = default;
        _flush.SetResult(result);
    }

    private void Release(ref OutputSegments segments)
    {
        for (OutputSegment? segment = segments.Head; segment is not null;)
        {
            OutputSegment? next = segment.NextSegment;
            segment.Return();
            if (_spare.Count < MaxSpareSegments)
            {
                _spare.Push(segment);
            }

            segment = next;
        }

        segments = default;
    }
}
