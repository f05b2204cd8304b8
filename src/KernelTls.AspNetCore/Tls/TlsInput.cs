using System.Net.Sockets;
using System.Runtime.CompilerServices;
using KernelTls.AspNetCore.Transport;
using Microsoft.AspNetCore.Connections;

namespace KernelTls.AspNetCore.Tls;

/// <summary>Reads from the TLS stream on behalf of the pipe reader, and translates errors to Kestrel's.</summary>
/// <remarks>
/// <para>
/// If the peer closes its sending half while no read is pending, this class reads once to determine the reason, so that
/// ConnectionClosed informs a running request that its client has disconnected. If the peer closes it during a read,
/// Kestrel's heartbeat triggers that check later.
/// </para>
/// <para>
/// States: Idle → Reading → Idle; Idle → Watching → Idle. A read that starts while watching waits for the watch. The
/// watch reads one byte, which the next read returns first. Unread data therefore ends the watch, as it stops the
/// default transport at the limit of its buffer. The watch begins only after the peer has closed its sending half, so
/// it never has to wait, and does not block a request that asks for the client's certificate or the disposal.
/// </para>
/// <para>
/// A stream without close_notify is truncated (RFC 8446, section 6.1) and is reported to Kestrel as a reset.
/// </para>
/// </remarks>
/// <param name="stream">The stream.</param>
/// <param name="connection">The connection, which owns the stream's socket.</param>
/// <param name="pool">The pool of the reads' memory, which receives the size of each.</param>
/// <param name="output">
/// The writer, which is notified of received data. It sends everything flushed before exclusive work begins.
/// </param>
/// <param name="failed">The callback that is called on failures.</param>
internal sealed class TlsInput(
    KtlsStream stream, DeferredConnection connection, InputPool pool, TlsPipeWriter output, Action<Exception> failed) : Stream
{
    private enum State
    {
        Idle,
        Reading,
        Watching,
        Stopped,
    }

    /// <summary>
    /// The time limit for the watch if the peer does not read. Closing the socket then ends the watch.
    /// </summary>
    private static readonly TimeSpan s_watchLimit = TimeSpan.FromSeconds(1);

    private readonly Lock _lock = new();
    private volatile State _state;
    private int _reads;
    private int _readsAtLastBeat = -1;
    private Task _watch = Task.CompletedTask;
    private byte[]? _watched;
    private bool _hasWatched;
    private bool _ended;
    private volatile bool _isStopped;
    private volatile bool _hasPeerEnded;

    /// <summary>Gets a value that indicates whether the end of the stream was read.</summary>
    public bool HasEnded => _ended;

    public override bool CanRead => true;

    public override bool CanSeek => false;

    public override bool CanWrite => false;

    public override long Length => throw new NotSupportedException();

    public override long Position
    {
        get => throw new NotSupportedException();
        set => throw new NotSupportedException();
    }

    public override ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
    {
        if (!TryEnter())
        {
            return ReadAfterWatchAsync(buffer, cancellationToken);
        }

        return _hasWatched ? ValueTask.FromResult(ReadWatched(buffer)) : ReadStreamAsync(buffer, cancellationToken);
    }

    /// <summary>
    /// Starts the watch if no read began since the last heartbeat: a request is running, or the application does not
    /// read.
    /// </summary>
    public void OnHeartbeat()
    {
        if (!_hasPeerEnded)
        {
            return;
        }

        int reads = Volatile.Read(ref _reads);
        bool isQuiet = reads == _readsAtLastBeat;
        _readsAtLastBeat = reads;
        if (isQuiet)
        {
            Watch();
        }
    }

    /// <summary>
    /// Notes that the peer has closed its sending half. A pending read detects that itself; otherwise the watch does.
    /// </summary>
    public void OnPeerEnded()
    {
        _hasPeerEnded = true;
        Watch();
    }

    /// <summary>
    /// Runs <paramref name="work"/> while nothing else reads or sends. If the peer closes its sending half during that
    /// time, the watch runs afterwards.
    /// </summary>
    /// <exception cref="NotSupportedException">A read is pending.</exception>
    public async Task RunExclusiveAsync(Func<CancellationToken, Task> work, CancellationToken cancellationToken)
    {
        bool isEntered = TryEnter();
        if (!isEntered && _hasPeerEnded)
        {
            await LatestWatch().WaitAsync(cancellationToken).ConfigureAwait(false);
            isEntered = TryEnter();
        }

        if (!isEntered)
        {
            throw new NotSupportedException("The client's certificate cannot be requested while a read is pending.");
        }

        try
        {
            // Send earlier responses first; their flushes have already returned.
            await output.SendQueuedAsync().WaitAsync(cancellationToken).ConfigureAwait(false);
            await work(cancellationToken).ConfigureAwait(false);
        }
        finally
        {
            _state = State.Idle;
            if (_hasPeerEnded)
            {
                Watch();
            }
        }
    }

    public override int Read(byte[] buffer, int offset, int count) => throw new NotSupportedException();

    public override void Write(byte[] buffer, int offset, int count) => throw new NotSupportedException();

    public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

    public override void SetLength(long value) => throw new NotSupportedException();

    public override void Flush()
    {
    }

    /// <summary>Prevents new watches and waits for the current one.</summary>
    public override async ValueTask DisposeAsync()
    {
        Task watch;
        lock (_lock)
        {
            _isStopped = true;
            TryMove(State.Idle, State.Stopped);
            watch = _watch;
        }

        await watch.WaitAsync(s_watchLimit).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        await base.DisposeAsync().ConfigureAwait(false);
    }

    private void Watch()
    {
        if (_state != State.Idle)
        {
            return;
        }

        lock (_lock)
        {
            if (_isStopped)
            {
                return;
            }

            if (_ended)
            {
                connection.FireConnectionClosed();
            }
            else if (!_hasWatched && TryMove(State.Idle, State.Watching))
            {
                _watch = WatchAsync();
            }
        }
    }

    private bool TryMove(State from, State to) => Interlocked.CompareExchange(ref _state, to, from) == from;

    private bool TryEnter()
    {
        if (TryMove(State.Idle, State.Reading))
        {
            _reads++;
            return true;
        }

        return false;
    }

    private ValueTask<int> ReadStreamAsync(Memory<byte> buffer, CancellationToken cancellationToken)
    {
        ValueTask<int> read = ReadOnceAsync(buffer, cancellationToken);
        if (read.IsCompletedSuccessfully)
        {
            int taken = read.GetAwaiter().GetResult();
            OnRead(taken, buffer.Length);
            _state = State.Idle;
            return ValueTask.FromResult(taken);
        }

        return AwaitAsync(read, buffer.Length, cancellationToken);
    }

    /// <summary>Reads, and returns synchronous exceptions in the task.</summary>
    private ValueTask<int> ReadOnceAsync(Memory<byte> buffer, CancellationToken cancellationToken)
    {
        try
        {
            return stream.ReadAsync(buffer, cancellationToken);
        }
        catch (Exception e)
        {
            return ValueTask.FromException<int>(e);
        }
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<int> AwaitAsync(ValueTask<int> read, int length, CancellationToken cancellationToken)
    {
        try
        {
            int taken = await read.ConfigureAwait(false);
            OnRead(taken, length);
            return taken;
        }
        catch (Exception e) when (e is not OperationCanceledException || !cancellationToken.IsCancellationRequested)
        {
            // Translate first: Kestrel aborts the connection in response to the failure.
            Exception translated = Translate(e);
            failed(e);
            throw translated;
        }
        finally
        {
            _state = State.Idle;
        }
    }

    private void OnRead(int taken, int length)
    {
        _ended = taken == 0 && length > 0;
        pool.OnRead(taken, length);
        output.OnReceived();
    }

    private async ValueTask<int> ReadAfterWatchAsync(Memory<byte> buffer, CancellationToken cancellationToken)
    {
        await LatestWatch().WaitAsync(cancellationToken).ConfigureAwait(false);
        if (!TryEnter())
        {
            throw new InvalidOperationException("Reading is not allowed while another read is pending or after the connection was closed.");
        }

        return _hasWatched
            ? ReadWatched(buffer)
            : await ReadStreamAsync(buffer, cancellationToken).ConfigureAwait(false);
    }

    private Task LatestWatch()
    {
        lock (_lock)
        {
            return _watch;
        }
    }

    private int ReadWatched(Memory<byte> buffer)
    {
        int taken = 0;
        if (!buffer.IsEmpty)
        {
            buffer.Span[0] = _watched![0];
            _hasWatched = false;
            taken = 1;
        }

        _state = State.Idle;
        return taken;
    }

    /// <summary>Reads one byte: data, the end of the stream, or a failure, which the next read meets again.</summary>
    private async Task WatchAsync()
    {
        // Yield, because the heartbeat visits all connections.
        await Task.CompletedTask.ConfigureAwait(ConfigureAwaitOptions.ForceYielding);
        if (_isStopped)
        {
            // The client disconnected because the server closed. There is no one to inform.
            _state = State.Idle;
            return;
        }

        try
        {
            _watched ??= new byte[1];
            _hasWatched = await stream.ReadAsync(_watched).ConfigureAwait(false) == 1;
            _ended = !_hasWatched;
        }
        catch (Exception e)
        {
            _ended = true;
            failed(e);
        }
        finally
        {
            _state = State.Idle;
        }

        if (_ended)
        {
            Watch();
        }
    }

    private Exception Translate(Exception e)
    {
        if (connection.AbortReason is { } reason)
        {
            return new ConnectionAbortedException(reason.Message, e);
        }

        return e switch
        {
            KtlsRekeyException => e,
            IOException => new ConnectionResetException(e.Message, e),

            // The client's certificate was requested while it was sending data. Nothing can be read any more.
            InvalidOperationException and not ObjectDisposedException => new ConnectionAbortedException(e.Message, e),
            _ => e,
        };
    }
}
