using System.IO.Pipelines;
using System.Runtime.CompilerServices;

namespace KernelTls.AspNetCore.Tls;

// Sending: decides which thread sends the queued data, and when.
internal sealed partial class TlsPipeWriter : IThreadPoolWorkItem
{
    /// <summary>The size of a full record (RFC 8446, section 5.1). Waiting for more would save nothing.</summary>
    private const int FullTurn = 1 << 14;

    private enum State
    {
        /// <summary>There is nothing to send.</summary>
        Idle,

        /// <summary>The queued data waits for its turn on the thread pool.</summary>
        Queued,

        /// <summary>A write is in progress. The queued data follows it.</summary>
        Sending,
    }

    private State _state;
    private OutputSegments _queued;
    private OutputSegments _sending;
    private bool _isTurnComing;
    private ConfiguredValueTaskAwaitable _write;
    private Action? _endWrite;
    private TaskCompletionSource? _drained;

    // Whether a flush was sent since data was received.
    private bool _hasFlushed;

    /// <summary>
    /// Notes that data was received. The next flush is probably the response, and the only one for a while.
    /// </summary>
    public void OnReceived() => Volatile.Write(ref _hasFlushed, false);

    /// <summary>
    /// Returns a task that completes when everything flushed is sent or the connection is broken. Does not wait for a
    /// turn.
    /// </summary>
    public Task SendQueuedAsync()
    {
        Task drained;
        bool sends;
        bool ends;
        lock (_lock)
        {
            _drained ??= new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
            drained = _drained.Task;
            sends = _state != State.Sending && TryTakeQueued();
            ends = !sends && TryEndPause();
        }

        SendOrEndWait(sends, ends);
        return drained;
    }

    /// <summary>Sends the queued data when its turn comes, and the data that is queued during the write.</summary>
    void IThreadPoolWorkItem.Execute()
    {
        bool sends;
        bool ends;
        lock (_lock)
        {
            _isTurnComing = false;
            if (_state != State.Queued)
            {
                // A flush that completed a full record has already sent it.
                return;
            }

            sends = TryTakeQueued();
            ends = !sends && TryEndPause();
        }

        SendOrEndWait(sends, ends);
    }

    /// <summary>
    /// Sends the data that was taken. If it was dropped because the connection is broken, completes the waiting flush.
    /// </summary>
    private void SendOrEndWait(bool sends, bool ends)
    {
        if (sends)
        {
            Send();
        }
        else if (ends)
        {
            EndWait(new FlushResult(isCanceled: false, isCompleted: true), inline: false);
        }
    }

    /// <summary>Moves the written data to the queue. Small flushes share a block.</summary>
    private void Enqueue()
    {
        if (_unsent.Bytes == 0)
        {
            Release(ref _unsent);
            return;
        }

        if (_queued.TryCopy(_unsent))
        {
            Release(ref _unsent);
        }
        else
        {
            _queued.Append(ref _unsent);
        }
    }

    /// <summary>
    /// Returns whether the caller must send the queued data, by <see cref="Send"/>. Otherwise another thread sends it,
    /// now or later.
    /// </summary>
    private bool TryTakeTurn()
    {
        return _state != State.Sending && _queued.Bytes > 0 && !WaitsForTurn() && TryTakeQueued();
    }

    private bool WaitsForTurn()
    {
        if (_queued.Bytes >= FullTurn || _queued.HasFiles)
        {
            return false;
        }

        if (_state == State.Queued)
        {
            return true;
        }

        if (!_hasFlushed)
        {
            _hasFlushed = true;
            return false;
        }

        _state = State.Queued;
        if (!_isTurnComing)
        {
            _isTurnComing = true;
            ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);
        }

        return true;
    }

    /// <summary>
    /// Makes the queued data the current write. Returns false if there is none, or if it must not be sent any more.
    /// </summary>
    private bool TryTakeQueued()
    {
        if (_isBroken)
        {
            Release(ref _queued);
        }

        _sending = _queued;
        _queued = default;
        if (_sending.Head is null)
        {
            _state = State.Idle;
            _drained?.TrySetResult();
            _drained = null;
            return false;
        }

        _state = State.Sending;
        return true;
    }

    /// <summary>
    /// Sends the data that was taken, and the data that is queued during the write. A write that has to wait is
    /// completed by a callback.
    /// </summary>
    private void Send()
    {
        do
        {
#pragma warning disable CA2012 // CompleteWrite awaits it once.
            _write = WriteAsync(_sending).ConfigureAwait(false);
#pragma warning restore CA2012
            ConfiguredValueTaskAwaitable.ConfiguredValueTaskAwaiter write = _write.GetAwaiter();
            if (!write.IsCompleted)
            {
                write.UnsafeOnCompleted(_endWrite ??= EndWrite);
                return;
            }
        }
        while (CompleteWrite());
    }

    private void EndWrite()
    {
        if (CompleteWrite())
        {
            Send();
        }
    }

    /// <summary>Completes the write. Returns whether another one must follow.</summary>
    private bool CompleteWrite()
    {
        Exception? failure = null;
        try
        {
            _write.GetAwaiter().GetResult();
        }
        catch (Exception e)
        {
            failure = e;
        }

        if (failure is not null)
        {
            lock (_lock)
            {
                _isBroken = true;
            }

            _failed(failure);
        }

        bool goesOn;
        bool ends;
        bool isBroken;
        lock (_lock)
        {
            Release(ref _sending);
            _write = default;
            goesOn = TryTakeQueued();
            ends = TryEndPause();
            isBroken = _isBroken;
        }

        if (ends)
        {
            EndWait(new FlushResult(isCanceled: false, isCompleted: isBroken), inline: !goesOn);
        }

        return goesOn;
    }

    /// <summary>Writes to the stream, and returns synchronous exceptions in the task.</summary>
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
}
