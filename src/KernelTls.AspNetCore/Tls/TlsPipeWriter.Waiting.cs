using System.IO.Pipelines;
using System.Threading.Tasks.Sources;

namespace KernelTls.AspNetCore.Tls;

// Flushes that wait until enough data is sent.
internal sealed partial class TlsPipeWriter : IValueTaskSource<FlushResult>
{
    private CancellationTokenRegistration _cancellation;
    private CancellationToken _waitToken;
    private ManualResetValueTaskSourceCore<FlushResult> _flush;
    private bool _isPaused;
    private bool _isWaiting;
    private bool _cancelNext;

    private long Pending => _sending.Bytes + _queued.Bytes;

    /// <summary>
    /// Gets a value that indicates whether files are queued. A file may be closed or be too short until it is sent, so
    /// its flush waits for that.
    /// </summary>
    private bool HasFilesPending => _sending.HasFiles || _queued.HasFiles;

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

        // Not inline: the caller may hold locks that the waiting code needs.
        EndWait(new FlushResult(isCanceled: true, isCompleted: false), inline: false);
    }

    FlushResult IValueTaskSource<FlushResult>.GetResult(short token) => _flush.GetResult(token);

    ValueTaskSourceStatus IValueTaskSource<FlushResult>.GetStatus(short token) => _flush.GetStatus(token);

    void IValueTaskSource<FlushResult>.OnCompleted(
        Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags) =>
        _flush.OnCompleted(continuation, state, token, flags);

    /// <summary>Completes a flush, or makes it wait if too much data is queued.</summary>
    private ValueTask<FlushResult> WaitWhilePaused(CancellationToken cancellationToken)
    {
        _isPaused |= Pending >= _pauseThreshold || HasFilesPending;
        if (!_isPaused)
        {
            return _isBroken ? ValueTask.FromResult(new FlushResult(isCanceled: false, isCompleted: true)) : default;
        }

        if (_cancelNext)
        {
            // Canceled while it was sending.
            _cancelNext = false;
            return ValueTask.FromResult(new FlushResult(isCanceled: true, isCompleted: _isBroken));
        }

        _flush.Reset();
        _isWaiting = true;
        _waitToken = cancellationToken;
        if (cancellationToken.CanBeCanceled)
        {
            _cancellation = cancellationToken.UnsafeRegister(
                static (w, token) => ((TlsPipeWriter)w!).CancelWait(token), this);
        }

        return new ValueTask<FlushResult>(this, _flush.Version);
    }

    /// <summary>Ends the pause if enough is sent. Returns whether a flush was waiting.</summary>
    private bool TryEndPause()
    {
        if (!_isPaused || Pending >= _resumeThreshold || HasFilesPending)
        {
            return false;
        }

        bool isWaiting = _isWaiting;
        _isPaused = false;
        _isWaiting = false;
        return isWaiting;
    }

    private void CancelWait(CancellationToken cancellationToken)
    {
        lock (_lock)
        {
            // The callback of an earlier flush may be late, and the current token may differ.
            if (!_isWaiting || cancellationToken != _waitToken)
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

    private void EndWait(FlushResult result, bool inline)
    {
        if (!inline)
        {
            ThreadPool.UnsafeQueueUserWorkItem(
                static s => s.Writer.EndWait(s.Result, inline: true), (Writer: this, Result: result), preferLocal: false);
            return;
        }

        _cancellation.Unregister();
        _cancellation = default;
        _flush.SetResult(result);
    }
}
