using System.Buffers;
using System.IO.Pipelines;
using System.Runtime.CompilerServices;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Gathers what Kestrel writes in a <see cref="Pipe"/>, as the default transport does, and sends several flushes by one
/// write of the stream.
/// </summary>
/// <remarks>
/// <para>
/// Data that is flushed while a write of the stream is in progress, or before its turn, is sent by one write, so that
/// small flushes share full records (RFC 8446, section 5.1). The pipe decides when a flush has to wait. A flush that
/// leaves a file unsent waits until the file is sent, because the file may be closed or be too short until then.
/// </para>
/// <para>
/// States: Idle → Sending → Idle, on the flushing thread, for the first flush after data was received, a full record or
/// a file. Idle → Queued → Sending → Idle, on the thread pool, for every other flush, which others may join until its
/// turn.
/// </para>
/// <para>
/// A flush that is canceled, by its token or <see cref="CancelPendingFlush"/>, does not stop the write, because a part
/// of a record cannot be taken back. A failed write ends the connection, and flushes complete with
/// <see cref="FlushResult.IsCompleted"/>. Only one thread at a time may use the writer, except for CancelPendingFlush.
/// A file is written like memory: <see cref="Announce"/>, GetMemory, Advance. The flush sends it in order.
/// </para>
/// </remarks>
internal sealed partial class TlsPipeWriter : PipeWriter
{
    /// <summary>The block size of Kestrel's pool.</summary>
    public const int BlockSize = 4096;

    private static readonly FlushResult s_ended = new(isCanceled: false, isCompleted: true);

    private readonly KtlsStream _stream;
    private readonly Action<Exception> _failed;
    private readonly PipeWriter _writer;
    private readonly PipeReader _reader;

    // Guards what is flushed, queued, or being sent.
    private readonly Lock _lock = new();
    private bool _isBroken;
    private bool _isCompleted;
    private bool _dropsUnflushed;

    // The files that are written and not sent yet.
    private readonly Queue<FilePlaceholder> _files = new();
    private FilePlaceholder? _announced;
    private long _written;
    private long _unflushedFileBytes;
    private TaskCompletionSource<bool>? _filesSent;

    /// <param name="stream">The stream.</param>
    /// <param name="pool">The pool of the blocks.</param>
    /// <param name="pauseThreshold">
    /// The number of flushed but unsent bytes from which a flush waits: 0 for never, -1 for the default of a pipe.
    /// </param>
    /// <param name="failed">The callback that is called on failures.</param>
    public TlsPipeWriter(KtlsStream stream, MemoryPool<byte> pool, long pauseThreshold, Action<Exception> failed)
    {
        _stream = stream;
        _failed = failed;
        Pipe pipe = new(new PipeOptions(
            pool,
            writerScheduler: PipeScheduler.ThreadPool,
            pauseWriterThreshold: pauseThreshold,
            resumeWriterThreshold: pauseThreshold < 0 ? pauseThreshold : pauseThreshold / 2,
            minimumSegmentSize: BlockSize,
            useSynchronizationContext: false));
        _writer = pipe.Writer;
        _reader = pipe.Reader;
    }

    public override bool CanGetUnflushedBytes => true;

    public override long UnflushedBytes => _writer.UnflushedBytes + _unflushedFileBytes;

    /// <summary>
    /// Announces that the next write is <paramref name="file"/>: GetMemory returns its memory, which has no accessible
    /// content, and Advance by its length takes the file and its ownership.
    /// </summary>
    public void Announce(FilePlaceholder file) => _announced = file;

    /// <summary>Reverts <see cref="Announce"/> if the file was not queued.</summary>
    public void Withdraw() => _announced = null;

    public override Memory<byte> GetMemory(int sizeHint = 0)
    {
        if (_isCompleted)
        {
            throw new InvalidOperationException("Writing is not allowed after the writer was completed.");
        }

        return _announced is { } file ? file.Memory : _writer.GetMemory(sizeHint);
    }

    public override Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;

    public override void Advance(int bytes)
    {
        if (_announced is { } file)
        {
            AdvanceBy(file, bytes);
            return;
        }

        _writer.Advance(bytes);
        _written += bytes;
    }

    public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default)
    {
        if (cancellationToken.IsCancellationRequested)
        {
            return ValueTask.FromCanceled<FlushResult>(cancellationToken);
        }

        ValueTask<FlushResult> flush;
        bool sends;
        lock (_lock)
        {
            if (_isBroken)
            {
                return ValueTask.FromResult(s_ended);
            }

            flush = Enqueue(cancellationToken);
            sends = TryTakeTurn();
        }

        if (!sends)
        {
            return flush;
        }

        Send();
        lock (_lock)
        {
            return _isBroken && flush.IsCompletedSuccessfully ? ValueTask.FromResult(s_ended) : flush;
        }
    }

    public override void CancelPendingFlush()
    {
        lock (_lock)
        {
            if (_filesSent?.TrySetResult(true) == true)
            {
                return;
            }
        }

        _writer.CancelPendingFlush();
    }

    /// <summary>
    /// Completes the writer. Unflushed data is sent when the connection closes, or dropped if there is an exception.
    /// </summary>
    public override void Complete(Exception? exception = null)
    {
        _isCompleted = true;
        _dropsUnflushed |= exception is not null;
    }

    /// <summary>Completes the writer. The task completes when everything is sent or the connection is broken.</summary>
    public async Task DrainAsync()
    {
        Complete();
        lock (_lock)
        {
            if (!_isBroken && !_dropsUnflushed)
            {
#pragma warning disable CA2012 // Another flush may be waiting. The task of SendQueuedAsync follows both.
                _ = Enqueue(CancellationToken.None);
#pragma warning restore CA2012
            }
        }

        await SendQueuedAsync().ConfigureAwait(false);
        End();
        _writer.Complete();
    }

    /// <summary>
    /// Breaks the connection, because more was counted as written than was written here. Nothing may follow.
    /// </summary>
    public void Break(Exception failure)
    {
        End();
        _failed(failure);
    }

    private void End()
    {
        lock (_lock)
        {
            _isBroken = true;
            if (_state != State.Sending)
            {
                Drop();
            }
        }
    }

    private void AdvanceBy(FilePlaceholder file, int bytes)
    {
        if (bytes != file.Length)
        {
            InvalidOperationException failure = new(
                $"{bytes} bytes were written instead of the {file.Length} bytes of the file that was announced.");
            Break(failure);
            throw failure;
        }

        lock (_lock)
        {
            file.MarkQueued(_written);
            _files.Enqueue(file);
        }

        _unflushedFileBytes += bytes;
        _announced = null;
    }

    /// <summary>Moves what was written to the queue, and returns the task of its flush.</summary>
    private ValueTask<FlushResult> Enqueue(CancellationToken cancellationToken)
    {
        bool hasFiles = _files.Count > 0;
        long bytes = _writer.UnflushedBytes;
        ValueTask<FlushResult> flush = _writer.FlushAsync(hasFiles ? CancellationToken.None : cancellationToken);
        _queuedBytes += bytes - _writer.UnflushedBytes;
        _queuedFiles = _files.Count - _filesInWrite;
        _unflushedFileBytes = 0;
        if (!hasFiles)
        {
            return flush;
        }

        if (flush.IsCompletedSuccessfully && flush.Result is { IsCanceled: true } canceled)
        {
            return ValueTask.FromResult(canceled);
        }

        if (_filesSent is null or { Task.IsCompleted: true })
        {
            _filesSent = new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);
        }

        return WaitForFilesAsync(_filesSent.Task, cancellationToken);
    }

    private async ValueTask<FlushResult> WaitForFilesAsync(Task<bool> sent, CancellationToken cancellationToken)
    {
        bool isCanceled = await sent.WaitAsync(cancellationToken).ConfigureAwait(false);
        return new FlushResult(isCanceled, isCompleted: !isCanceled && _isBroken);
    }

    /// <summary>
    /// Drops what is not sent. Flushes complete, as on a pipe whose reader has completed. The pipe returns its memory when the writer
    /// completes: to advance the reader would let a waiting flush go on before it can know that the connection is broken.
    /// </summary>
    private void Drop()
    {
        _reader.Complete();
        foreach (IDisposable file in _files)
        {
            file.Dispose();
        }

        _files.Clear();
        _queuedFiles = 0;
        _filesInWrite = 0;
    }
}
