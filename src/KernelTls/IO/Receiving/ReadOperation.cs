using System.Net.Sockets;
using System.Threading.Tasks.Sources;

namespace KernelTls.IO;

/// <summary>
/// Performs an asynchronous read. If it has to wait, the socket's completion resumes it, and it completes the caller's
/// <see cref="ValueTask{TResult}"/>. <see cref="TlsReceiver"/> reuses it for later reads.
/// </summary>
internal sealed class ReadOperation : SocketAsyncEventArgs, IValueTaskSource<int>
{
    private readonly TlsReceiver _receiver;
    private readonly RecordReader _reader;
    private readonly SocketReceiver _socket;
    private ManualResetValueTaskSourceCore<int> _source;
    private Memory<byte> _buffer;
    private CancellationToken _cancellation;

    public ReadOperation(TlsReceiver receiver, RecordReader reader, SocketReceiver socket)
        : base(true) // The socket need not flow the ExecutionContext: the value task source does.
    {
        _receiver = receiver;
        _reader = reader;
        _socket = socket;
    }

    /// <summary>Begins a read.</summary>
    /// <returns>The version of the value task, which the caller needs if the read has to wait.</returns>
    public short Begin(Memory<byte> buffer, CancellationToken cancellationToken)
    {
        _buffer = buffer;
        _cancellation = cancellationToken;
        return _source.Version;
    }

    /// <summary>Reads until there is a result. Returns <see langword="false"/> if the read waits and will complete the value task.</summary>
    public bool TryRun(out int bytesRead)
    {
        while (!_reader.TryRead(_buffer.Span, out bytesRead))
        {
            if (_reader.Source != ReadSource.Wait)
            {
                _ = CompletePendingSendAsync();
                return false;
            }

            SetBuffer(IsDirect ? _buffer : default);
            if (_socket.Start(this, _cancellation))
            {
                return false;
            }

            // If the receive has filled a small buffer, more has probably arrived, so the next read fills the shared buffer.
            if (TryProcessCompletion(_buffer.Length < ReceiveBuffer.SmallRead && BytesTransferred == _buffer.Length, out bytesRead))
            {
                break;
            }
        }

        return true;
    }

    /// <summary>Clears the references to the caller's memory and token, which must not outlive the read.</summary>
    public void ClearReferences()
    {
        _buffer = default;
        _cancellation = default;
        SetBuffer(default);
    }

    /// <summary>Returns the result and makes the operation available to another read.</summary>
    public int GetResult(short token)
    {
        bool isOver = _source.GetStatus(token) != ValueTaskSourceStatus.Pending;
        try
        {
            return _source.GetResult(token);
        }
        finally
        {
            if (isOver)
            {
                _source.Reset();
                _receiver.Reuse(this);
            }
        }
    }

    public ValueTaskSourceStatus GetStatus(short token) => _source.GetStatus(token);

    public void OnCompleted(Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags) =>
        _source.OnCompleted(continuation, state, token, flags);

    protected override void OnCompleted(SocketAsyncEventArgs e)
    {
        int bytesRead;
        try
        {
            if (!TryProcessCompletion(hasMore: false, out bytesRead) && !TryRun(out bytesRead))
            {
                return;
            }
        }
        catch (Exception failure)
        {
            Fail(failure);
            return;
        }

        Complete(bytesRead);
    }

    /// <summary>Gets a value that indicates whether the receive fills the caller's memory instead of only waiting for the socket.</summary>
    private bool IsDirect => _reader.IsKernel && !_buffer.IsEmpty;

    /// <summary>Processes the receive that has completed. Returns <see langword="false"/> if it returned no data.</summary>
    private bool TryProcessCompletion(bool hasMore, out int bytesRead)
    {
        if (SocketError == SocketError.OperationAborted && _cancellation.IsCancellationRequested)
        {
            throw new OperationCanceledException(_cancellation);
        }

        SocketReceiveResult result = _socket.Complete(BytesTransferred, SocketError);
        if (IsDirect)
        {
            return _reader.TryProcessReceive(result, hasMore, out bytesRead);
        }

        bytesRead = 0;
        _reader.ProcessWait(result);
        return false;
    }

    /// <summary>Lets OpenSSL send the record that it must send first, and then continues the read.</summary>
    private async Task CompletePendingSendAsync()
    {
        int bytesRead;
        try
        {
            await _receiver.CompletePendingSendAsync(_cancellation).ConfigureAwait(false);
            if (!TryRun(out bytesRead))
            {
                return;
            }
        }
        catch (Exception failure)
        {
            Fail(failure);
            return;
        }

        Complete(bytesRead);
    }

    private void Fail(Exception failure)
    {
        ClearReferences();
        _receiver.EndRead();
        _source.SetException(_receiver.Translate(failure));
    }

    private void Complete(int bytesRead)
    {
        // The caller may start the next read as soon as the value task completes.
        ClearReferences();
        _receiver.EndRead();
        _source.SetResult(bytesRead);
    }
}
