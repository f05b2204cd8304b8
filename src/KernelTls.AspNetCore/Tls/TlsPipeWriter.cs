using System.Buffers;
using System.IO.Pipelines;

namespace KernelTls.AspNetCore.Tls;

/// <summary>Collects written data in blocks of the connection's pool, and sends several flushes by one write.</summary>
/// <remarks>
/// <para>
/// Data that is flushed while a write of the stream is in progress, or before its turn, is sent by one write, so that
/// small flushes share full records (RFC 8446, section 5.1). A flush completes immediately, unless more is queued than
/// the default transport permits, or a file is queued: then it completes when that is sent.
/// </para>
/// <para>
/// States: Idle → Sending → Idle, on the flushing thread, for the first flush after data was received, a full record or a
/// file. Idle → Queued → Sending → Idle, on the thread pool, for every other flush, which others may join until its turn.
/// </para>
/// <para>
/// A flush that is canceled, by its token or <see cref="CancelPendingFlush"/>, does not stop the write, because a part
/// of a record cannot be taken back. Later flushes follow it. A failed write ends the connection, and flushes complete
/// with <see cref="FlushResult.IsCompleted"/>, as on a pipe whose reader has completed. Only one thread at a time may
/// use the writer, except for CancelPendingFlush. A file is written like memory: <see cref="Announce"/>, GetMemory,
/// Advance. The flush sends it in order.
/// </para>
/// </remarks>
internal sealed partial class TlsPipeWriter : PipeWriter
{
    /// <summary>The threshold that PipeOptions uses for -1.</summary>
    private const int PipeDefault = 64 * 1024;

    /// <summary>The number of spare segments: enough for a response of 64 KiB with its head.</summary>
    private const int MaxSpareSegments = 20;

    private readonly KtlsStream _stream;
    private readonly MemoryPool<byte> _pool;
    private readonly long _pauseThreshold;
    private readonly long _resumeThreshold;
    private readonly Action<Exception> _failed;
    private readonly Stack<OutputSegment> _spare = new();

    // Written but not flushed.
    private OutputSegments _unsent;

    // Guards the data that is flushed, queued, or being sent.
    private readonly Lock _lock = new();
    private bool _isBroken;
    private bool _isCompleted;

    /// <summary>Initializes a new instance of the <see cref="TlsPipeWriter"/> class.</summary>
    /// <param name="stream">The stream.</param>
    /// <param name="pool">The pool of the blocks.</param>
    /// <param name="pauseThreshold">
    /// The number of flushed but unsent bytes from which a flush waits: 0 for never, -1 for the default of a pipe.
    /// </param>
    /// <param name="failed">The callback that is called on failures.</param>
    public TlsPipeWriter(KtlsStream stream, MemoryPool<byte> pool, long pauseThreshold, Action<Exception> failed)
    {
        _stream = stream;
        _pool = pool;
        _pauseThreshold = pauseThreshold switch
        {
            0 => long.MaxValue,
            -1 => PipeDefault,
            _ => pauseThreshold,
        };
        _resumeThreshold = Math.Max(_pauseThreshold / 2, 1);
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
            throw new ArgumentOutOfRangeException(nameof(bytes), bytes, "The value exceeds the length of the memory that GetMemory returned.");
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
                throw new InvalidOperationException("Another flush is pending.");
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

            Enqueue();
            if (!TryTakeTurn())
            {
                return WaitWhilePaused(cancellationToken);
            }
        }

        Send();
        lock (_lock)
        {
            return WaitWhilePaused(cancellationToken);
        }
    }

    /// <summary>
    /// Completes the writer. Unflushed data is sent when the connection closes, or dropped if there is an exception.
    /// </summary>
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

    /// <summary>Completes the writer. The task completes when everything is sent or the connection is broken.</summary>
    public async Task DrainAsync()
    {
        Complete();
        lock (_lock)
        {
            _cancelNext = false;
            if (!_isBroken)
            {
                Enqueue();
            }
        }

        await SendQueuedAsync().ConfigureAwait(false);
        lock (_lock)
        {
            // Data written after the connection broke.
            Release(ref _unsent);
        }
    }

    private OutputSegment NewSegment()
    {
        lock (_lock)
        {
            return _spare.TryPop(out OutputSegment? spare) ? spare : new OutputSegment();
        }
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
