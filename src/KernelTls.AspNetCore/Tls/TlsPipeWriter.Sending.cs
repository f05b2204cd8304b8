using System.Buffers;
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
    private bool _isTurnComing;
    private TaskCompletionSource? _drained;

    // Flushed, and not in the present write.
    private long _queuedBytes;
    private int _queuedFiles;

    // The present write.
    private ReadOnlySequence<byte> _sending;
    private int _filesInWrite;
    private long _sent;
    private ConfiguredValueTaskAwaitable _write;
    private Action? _endWrite;

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
        lock (_lock)
        {
            _drained ??= new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
            drained = _drained.Task;
            sends = _state != State.Sending && TryTakeQueued();
        }

        if (sends)
        {
            Send();
        }

        return drained;
    }

    /// <summary>Sends the queued data when its turn comes, and the data that is queued during the write.</summary>
    void IThreadPoolWorkItem.Execute()
    {
        lock (_lock)
        {
            _isTurnComing = false;

            // Otherwise a flush that completed a full record has already sent it.
            if (_state != State.Queued || !TryTakeQueued())
            {
                return;
            }
        }

        Send();
    }

    /// <summary>
    /// Returns whether the caller must send the queued data, by <see cref="Send"/>. Otherwise another thread sends it,
    /// now or later.
    /// </summary>
    private bool TryTakeTurn() =>
        _state != State.Sending && (_queuedBytes > 0 || _queuedFiles > 0) && !WaitsForTurn() && TryTakeQueued();

    private bool WaitsForTurn()
    {
        if (_queuedBytes >= FullTurn || _queuedFiles > 0)
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
    /// Makes the queued data the present write. Returns false if there is none, or if it must not be sent any more.
    /// </summary>
    private bool TryTakeQueued()
    {
        if (_isBroken)
        {
            Drop();
        }
        else if (_queuedBytes > 0 || _queuedFiles > 0)
        {
            _sending = _reader.TryRead(out ReadResult read) ? read.Buffer : default;
            _filesInWrite = _queuedFiles;
            _queuedBytes = 0;
            _queuedFiles = 0;
            _state = State.Sending;
            return true;
        }

        _state = State.Idle;
        _drained?.TrySetResult();
        _drained = null;
        return false;
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
            _write = WriteAsync().ConfigureAwait(false);
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
        try
        {
            _write.GetAwaiter().GetResult();
        }
        catch (Exception failure)
        {
            lock (_lock)
            {
                _isBroken = true;
            }

            _failed(failure);
        }

        lock (_lock)
        {
            _write = default;
            if (!_sending.IsEmpty && !_isBroken)
            {
                _sent += _sending.Length;
                _reader.AdvanceTo(_sending.End);
            }

            _sending = default;
            bool goesOn = TryTakeQueued();
            if (!goesOn || _filesInWrite == 0)
            {
                _filesSent?.TrySetResult(false);
            }

            return goesOn;
        }
    }

    /// <summary>Writes to the stream, and returns synchronous exceptions in the task.</summary>
    private ValueTask WriteAsync()
    {
        try
        {
            return _filesInWrite > 0 ? WriteWithFilesAsync() : _stream.WriteAsync(_sending, CancellationToken.None);
        }
        catch (Exception e)
        {
            return ValueTask.FromException(e);
        }
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private async ValueTask WriteWithFilesAsync()
    {
        long position = _sent;
        ReadOnlySequence<byte> memory = _sending;
        while (FirstFile() is { } file)
        {
            if (file.Position > position)
            {
                ReadOnlySequence<byte> before = memory.Slice(0, file.Position - position);
                await _stream.WriteAsync(before, CancellationToken.None).ConfigureAwait(false);
                memory = memory.Slice(before.End);
                position = file.Position;
            }

            await file.SendAsync(_stream).ConfigureAwait(false);
            RemoveFile();
        }

        if (!memory.IsEmpty)
        {
            await _stream.WriteAsync(memory, CancellationToken.None).ConfigureAwait(false);
        }
    }

    private FilePlaceholder? FirstFile()
    {
        lock (_lock)
        {
            return _filesInWrite > 0 ? _files.Peek() : null;
        }
    }

    private void RemoveFile()
    {
        IDisposable sent;
        lock (_lock)
        {
            _filesInWrite--;
            sent = _files.Dequeue();
        }

        // Outside the lock, because this may close the file.
        sent.Dispose();
    }
}
