using System.Buffers;
using System.Diagnostics.CodeAnalysis;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// The sending half of a connection. Data and OpenSSL's own records (KeyUpdate, close_notify) take turns at one gate, so that
/// no key changes while data is on its way to the kernel.
/// </summary>
/// <remarks>
/// States: Open → Closed (close_notify sent), Spent (the same, because the key was good for no more) or Broken (a send failed or
/// was cancelled half-way: what the kernel took of it is unknown, so nothing may follow).
/// </remarks>
[SuppressMessage("Design", "CA1001", Justification = "Nothing is held outside of the process's memory, and a stream may be closed when its session is gone already.")]
internal sealed partial class TlsSender
{
    private enum State
    {
        Open,
        Closed,
        Spent,
        Broken,
    }

    /// <summary>
    /// What is sent before the sender looks whether the peer wants a KeyUpdate, which goes before further data (RFC 8446,
    /// section 4.6.3).
    /// </summary>
    private const int MostAtOnce = 64 * 1024;

    private readonly TlsConnection _connection;
    private readonly Socket _socket;
    private readonly bool _kernel;
    private readonly KeyUpdates _keyUpdates;
    private readonly SemaphoreSlim _gate = new(1, 1);
    private readonly CancellationTokenSource _disposed = new();
    private RecordBudget _budget;
    private volatile State _state;
    private volatile bool _keyUpdateDue;
    private Exception? _failure;
    private int _writing;

    /// <param name="connection">The connection.</param>
    /// <param name="socket">The connection's socket.</param>
    /// <param name="kernel">Sending is in the kernel.</param>
    /// <param name="keyUpdates">Which keys can be changed.</param>
    /// <param name="recordLimit">How many records one key is good for.</param>
    public TlsSender(TlsConnection connection, Socket socket, bool kernel, KeyUpdates keyUpdates, long recordLimit)
    {
        _connection = connection;
        _socket = socket;
        _kernel = kernel;
        _keyUpdates = keyUpdates;
        _budget = new RecordBudget(recordLimit);
    }

    /// <summary>
    /// Gets why nothing can be sent any more: an answer to the peer's KeyUpdate that could not be sent, or <see cref="Abandon"/>.
    /// </summary>
    public Exception? Failure => Volatile.Read(ref _failure);

    /// <summary>Whether close_notify was sent: nothing can follow.</summary>
    public bool IsClosed => _state is State.Closed or State.Spent;

    /// <summary>Ends the sending half: nothing may follow a fatal alert, sent or received (RFC 8446, section 6.2).</summary>
    public void Abandon(Exception failure)
    {
        _ = Interlocked.CompareExchange(ref _failure, failure, null);
        _state = State.Broken;
    }

    /// <summary>Sends all of <paramref name="data"/>. Nothing is sent for no data: TLS has no use for empty records.</summary>
    public ValueTask SendAsync(ReadOnlyMemory<byte> data, CancellationToken cancellationToken)
    {
        Enter();
        if (cancellationToken.IsCancellationRequested)
        {
            ExitWrite();
            return ValueTask.FromCanceled(cancellationToken);
        }

        bool entered = _kernel && _gate.Wait(0, CancellationToken.None);
        if (entered && _state == State.Open && _budget.TryTake(data.Length))
        {
            int sent;
            try
            {
                sent = data.IsEmpty ? 0 : SendReady(data.Span);
            }
            catch (Exception e)
            {
                Leave(sent: false);
                ExitWrite();
                return ValueTask.FromException(Translate(e));
            }

            if (sent == data.Length)
            {
                Leave(sent: true);
                ExitWrite();
                return default;
            }

            // Charged again: cut where there was no room, it is perhaps more records than were counted.
            data = data[sent..];
        }

        return SendRestAsync(new ReadOnlySequence<byte>(data), entered, cancellationToken);
    }

    /// <summary>Sends all of <paramref name="data"/>, blocking; the socket's SendTimeout limits each wait.</summary>
    public void Send(ReadOnlySpan<byte> data)
    {
        Enter();
        try
        {
            if (!_gate.Wait(0) && !_gate.Wait(SocketTimeouts.ToTimeSpan(_socket.SendTimeout)))
            {
                throw TlsErrors.Socket("Unable to write data to the transport connection", SocketError.TimedOut);
            }

            bool sent = false;
            try
            {
                ThrowIfNotOpen();
                while (!data.IsEmpty)
                {
                    ReadOnlySpan<byte> part = data[..(int)Allow(data.Length)];
                    if (_kernel)
                    {
                        SendKernel(part);
                    }
                    else
                    {
                        WriteOpenSsl(part);
                    }

                    data = data[part.Length..];
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

    /// <summary>Sends close_notify after all data. Nothing can be sent afterwards; receiving goes on (RFC 8446, section 6.1).</summary>
    public async Task ShutdownAsync()
    {
        await _gate.WaitAsync().ConfigureAwait(false);
        bool sent = false;
        try
        {
            ThrowIfNotOpen();
            await UntilWrittenAsync(static c => c.Shutdown(), _disposed.Token).ConfigureAwait(false);
            _state = State.Closed;
            sent = true;
        }
        finally
        {
            Leave(sent);
        }
    }

    private void Enter()
    {
        if (Interlocked.Exchange(ref _writing, 1) != 0)
        {
            throw TlsErrors.WritePending();
        }
    }

    private void ExitWrite() => Volatile.Write(ref _writing, 0);

    /// <summary>Inside the gate: sends a part at a time, each as the key allows.</summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private async ValueTask SendPartsAsync(ReadOnlyMemory<byte> data, CancellationToken cancellationToken)
    {
        while (!data.IsEmpty)
        {
            ReadOnlyMemory<byte> part = data[..(int)await AllowAsync(data.Length, cancellationToken).ConfigureAwait(false)];
            if (_kernel)
            {
                await _socket.SendAsync(part, SocketFlags.None, cancellationToken).ConfigureAwait(false);
            }
            else
            {
                await WriteOpenSslAsync(part, cancellationToken).ConfigureAwait(false);
            }

            data = data[part.Length..];
        }
    }

    /// <summary>What an operation meets when the stream is disposed under it is the disposal, whatever the socket calls it.</summary>
    private Exception Translate(Exception e) => e switch
    {
        OperationCanceledException or ObjectDisposedException => e,
        _ when _disposed.IsCancellationRequested => new ObjectDisposedException(nameof(KtlsStream), e),
        SocketException socket => TlsErrors.Socket("Unable to write data to the transport connection", socket.SocketErrorCode),
        _ => e,
    };

    private void SendKernel(ReadOnlySpan<byte> data)
    {
        while (!data.IsEmpty)
        {
            int sent = _socket.Send(data, SocketFlags.None, out SocketError error);
            if (error != SocketError.Success)
            {
                throw TlsErrors.Socket("Unable to write data to the transport connection", error);
            }

            data = data[sent..];
        }
    }

    private void WriteOpenSsl(ReadOnlySpan<byte> data)
    {
        while (!data.IsEmpty)
        {
            NativeResult result = _connection.Write(data);
            switch (result.Status)
            {
                case NativeStatus.Ok:
                    data = data[(int)result.Bytes..];
                    break;
                case NativeStatus.WantWrite:
                    if (!_socket.Poll(SocketTimeouts.ToTimeSpan(_socket.SendTimeout), SelectMode.SelectWrite))
                    {
                        throw TlsErrors.Socket("Unable to write data to the transport connection", SocketError.TimedOut);
                    }

                    break;
                default:
                    throw TlsErrors.Write(result);
            }
        }
    }

    private async ValueTask WriteOpenSslAsync(ReadOnlyMemory<byte> data, CancellationToken cancellationToken)
    {
        while (!data.IsEmpty)
        {
            NativeResult result = _connection.Write(data.Span);
            switch (result.Status)
            {
                case NativeStatus.Ok:
                    data = data[(int)result.Bytes..];
                    break;
                case NativeStatus.WantWrite:
                    await WaitWritableAsync(cancellationToken).ConfigureAwait(false);
                    break;
                default:
                    throw TlsErrors.Write(result);
            }
        }
    }

    private async Task UntilWrittenAsync(Func<TlsConnection, NativeResult> write, CancellationToken cancellationToken)
    {
        while (true)
        {
            NativeResult result = write(_connection);
            switch (result.Status)
            {
                case NativeStatus.Ok:
                    return;
                case NativeStatus.WantWrite:
                    await WaitWritableAsync(cancellationToken).ConfigureAwait(false);
                    break;
                default:
                    throw TlsErrors.Write(result);
            }
        }
    }

    private async Task WaitWritableAsync(CancellationToken cancellationToken)
    {
        using CancellationTokenSource either = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken, _disposed.Token);
        try
        {
            await Readiness.WaitToWriteAsync(_connection.Socket, either.Token).ConfigureAwait(false);
        }
        catch (OperationCanceledException) when (_disposed.IsCancellationRequested)
        {
            throw new ObjectDisposedException(nameof(KtlsStream));
        }
        catch (OperationCanceledException e) when (cancellationToken.IsCancellationRequested)
        {
            throw new OperationCanceledException(e.Message, e, cancellationToken);
        }
    }

    /// <summary>Ends a send in parts that was under way when the connection failed: nothing follows a fatal alert.</summary>
    private void ThrowIfAbandoned()
    {
        if (Failure is { } failure)
        {
            throw failure;
        }
    }

    private void ThrowIfNotOpen()
    {
        ThrowIfAbandoned();
        switch (_state)
        {
            case State.Spent:
                throw TlsErrors.RecordLimit();
            case State.Closed:
                throw new InvalidOperationException("Not possible after close_notify was sent by ShutdownAsync.");
            case State.Broken:
                throw TlsErrors.Broken();
        }
    }

    /// <summary>Opens the gate, and sends a KeyUpdate that became due behind it.</summary>
    private void Leave(bool sent)
    {
        if (!sent && _state == State.Open)
        {
            _state = State.Broken;
        }

        if (_keyUpdateDue && _state == State.Open)
        {
            // Where the send buffer is full the gate stays shut until the update is out: data under the old key may not
            // follow it.
            _ = AnswerAndReleaseAsync();
        }
        else
        {
            Release();
        }
    }

    /// <summary>An update that became due between the last look and the release would wait for the next send: look again.</summary>
    private void Release()
    {
        _gate.Release();
        if (_keyUpdateDue && _state == State.Open && _gate.Wait(0))
        {
            Leave(sent: true);
        }
    }
}
