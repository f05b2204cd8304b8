using System.Net.Sockets;
using System.Runtime.CompilerServices;
using KernelTls.AspNetCore.Transport;
using Microsoft.AspNetCore.Connections;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// What the pipe reader reads from: the TLS stream, when the application asks for more, with errors as Kestrel knows them. When
/// the peer's sending half ends while nobody reads, what that means is found out, so that ConnectionClosed tells a request at work
/// that its client has gone. An end that comes during a read, Kestrel's heartbeat comes back to.
/// </summary>
/// <remarks>
/// <para>
/// States: Idle → Reading → Idle; Idle → Watching → Idle, where a read that comes waits for the watch. The watch is a read of one
/// byte, which the next read is given first: data that nobody takes ends it, as it ends the stock transport's at the limit of its
/// buffer. It begins only behind the end of the peer's sending half, and so has nothing to wait for: it is in nobody's way, be it
/// a request that asks for the client's certificate, or the disposal.
/// </para>
/// <para>A stream without close_notify is cut off (RFC 8446, section 6.1): to Kestrel the connection was reset.</para>
/// </remarks>
/// <param name="stream">The stream.</param>
/// <param name="connection">The connection, whose socket is the stream's.</param>
/// <param name="failed">Told of failures.</param>
internal sealed class TlsInput(KtlsStream stream, DeferredConnection connection, Action<Exception> failed) : Stream
{
    private enum State
    {
        Idle,
        Reading,
        Watching,
        Stopped,
    }

    /// <summary>For a peer that wants something sent before it reads on; the socket's end then ends the watch.</summary>
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

        return _hasWatched ? ValueTask.FromResult(TakeWatched(buffer)) : ReadStreamAsync(buffer, cancellationToken);
    }

    /// <summary>Nobody has read since the last beat: a request is at work, or the application does not care.</summary>
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

    /// <summary>The peer sends no more: who reads sees it, and where nobody does, the watch.</summary>
    public void OnPeerEnded()
    {
        _hasPeerEnded = true;
        Watch();
    }

    /// <summary>Nobody else reads while <paramref name="work"/> does. If the peer ends meanwhile, what that means is found out behind it.</summary>
    /// <exception cref="NotSupportedException">A read is pending.</exception>
    public async Task RunAloneAsync(Func<CancellationToken, Task> work, CancellationToken cancellationToken)
    {
        bool isEntered = TryEnter();
        if (!isEntered && _hasPeerEnded)
        {
            await LatestWatch().WaitAsync(cancellationToken).ConfigureAwait(false);
            isEntered = TryEnter();
        }

        if (!isEntered)
        {
            throw new NotSupportedException("The client's certificate may not be asked for while a read is pending.");
        }

        try
        {
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

    /// <summary>No watch begins any more, and the one that is at work is let end.</summary>
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
            _ended = taken == 0 && buffer.Length > 0;
            _state = State.Idle;
            return ValueTask.FromResult(taken);
        }

        return AwaitAsync(read, buffer.Length, cancellationToken);
    }

    /// <summary>What the stream throws at once, it throws when awaited.</summary>
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
            _ended = taken == 0 && length > 0;
            return taken;
        }
        catch (Exception e) when (e is not OperationCanceledException || !cancellationToken.IsCancellationRequested)
        {
            failed(e);
            throw Translate(e);
        }
        finally
        {
            _state = State.Idle;
        }
    }

    private async ValueTask<int> ReadAfterWatchAsync(Memory<byte> buffer, CancellationToken cancellationToken)
    {
        await LatestWatch().WaitAsync(cancellationToken).ConfigureAwait(false);
        if (!TryEnter())
        {
            throw new InvalidOperationException("Reading is not allowed while a read is pending, or after the connection was closed.");
        }

        return _hasWatched
            ? TakeWatched(buffer)
            : await ReadStreamAsync(buffer, cancellationToken).ConfigureAwait(false);
    }

    private Task LatestWatch()
    {
        lock (_lock)
        {
            return _watch;
        }
    }

    private int TakeWatched(Memory<byte> buffer)
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

    /// <summary>Ends with data, with the end, or with a failure, which the next read meets again.</summary>
    private async Task WatchAsync()
    {
        // The heartbeat goes through all connections.
        await Task.CompletedTask.ConfigureAwait(ConfigureAwaitOptions.ForceYielding);
        if (_isStopped)
        {
            // The client has gone because the server has: there is nobody to tell.
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

            // The client was asked for its certificate in the midst of its data: nothing can be read any more.
            InvalidOperationException and not ObjectDisposedException => new ConnectionAbortedException(e.Message, e),
            _ => e,
        };
    }
}
