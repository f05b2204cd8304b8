using System.Net.Sockets;
using KernelTls.Diagnostics;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// The receiving half of a connection. In the kernel: one socket receive into the caller's memory, as many records as are
/// there; when the next record is not data, OpenSSL takes it. Otherwise SSL_read, and a wait for readability.
/// </summary>
/// <remarks>
/// <para>
/// States: Open → Ended (close_notify received: every read gives 0) or Failed (every read throws). FIN without close_notify is
/// a failure, never an end. One read at a time: a second one throws.
/// </para>
/// <para>
/// A read that need not wait returns at once; one that waits is a value task source over the socket's own completion, without
/// a state machine, an allocation or an exception. An empty read waits without a buffer. What one receive brings beyond it, or
/// behind a small read that was filled at once, is held for the reads to come.
/// </para>
/// </remarks>
internal sealed partial class TlsReceiver : IDisposable
{
    /// <summary>Reads below this size share one receive, where more is there than one of them asked for.</summary>
    private const int SmallRead = 2048;

    /// <summary>What OpenSSL has to send before it reads on.</summary>
    private enum Obstacle
    {
        None,

        /// <summary>The answer to the peer's CertificateRequest.</summary>
        Certificate,

        /// <summary>A record that found no room.</summary>
        Room,
    }

    private readonly TlsConnection _connection;
    private readonly TlsSender _sender;
    private readonly SocketReceiver _socket;
    private readonly bool _kernel;
    private readonly bool _canRekey;
    private readonly Action? _keepSession;
    private readonly Action _certificateShown;
    private Operation? _spareOperation;
    private HeldBytes _held;
    private MessageAllowance _messages = new();
    private Exception? _failure;

    /// <summary>
    /// What the socket failed of. Kernel TLS tells an error before the records its parser has not come to, and tells it once
    /// (tls_sw.c, tls_rx_rec_wait); TCP itself gives what arrived first. So does a read here: it asks once more.
    /// </summary>
    private IOException? _socketFailure;
    private volatile bool _closed;
    private bool _askOpenSsl;
    private bool _readable;
    private bool _ended;
    private Obstacle _obstacle;
    private int _reading;

    /// <param name="connection">The connection.</param>
    /// <param name="sender">Answers the peer's KeyUpdates.</param>
    /// <param name="socket">The connection's socket.</param>
    /// <param name="kernel">Receiving is in the kernel.</param>
    /// <param name="pending">OpenSSL holds bytes from the handshake's last flight.</param>
    /// <param name="canRekey">The kernel takes a second key.</param>
    /// <param name="keepSession">Takes a session that the server gave; <see langword="null"/> where none is wanted.</param>
    /// <param name="certificateShown">Notes that a request after the handshake was answered with the own certificate.</param>
    public TlsReceiver(
        TlsConnection connection,
        TlsSender sender,
        SocketReceiver socket,
        bool kernel,
        bool pending,
        bool canRekey,
        Action? keepSession,
        Action certificateShown)
    {
        _connection = connection;
        _sender = sender;
        _socket = socket;
        _kernel = kernel;
        _canRekey = canRekey;
        _keepSession = keepSession;
        _certificateShown = certificateShown;
        _askOpenSsl = pending || !kernel;
    }

    /// <summary>Bytes received; 0 at the end of the stream, and for an empty buffer once data is ready.</summary>
    public ValueTask<int> ReceiveAsync(Memory<byte> buffer, CancellationToken cancellationToken)
    {
        Enter();
        if (cancellationToken.IsCancellationRequested)
        {
            Leave();
            return ValueTask.FromCanceled<int>(cancellationToken);
        }

        // Not to be had while the one who waited for an earlier read has not taken its result.
        Operation operation = _spareOperation ?? new Operation(this);
        _spareOperation = null;
        try
        {
            short version = operation.Begin(buffer, cancellationToken);
            if (operation.TryRun(out int taken))
            {
                operation.Forget();
                _spareOperation = operation;
                Leave();
                return new ValueTask<int>(taken);
            }

            return new ValueTask<int>(operation, version);
        }
        catch (Exception e)
        {
            operation.Forget();
            Leave();
            return ValueTask.FromException<int>(Translate(e));
        }
    }

    /// <summary>As <see cref="ReceiveAsync"/>, blocking; the socket's ReceiveTimeout limits each wait.</summary>
    public int Receive(Span<byte> buffer)
    {
        Enter();
        try
        {
            int taken;
            _readable = _kernel;
            while (!TryTake(buffer, out taken))
            {
                if (_obstacle != Obstacle.None)
                {
                    Overcome();
                }
                else
                {
                    Accept(_socket.WaitReadable());
                }
            }

            return taken;
        }
        catch (Exception e) when (Translate(e) is var translated && translated != e)
        {
            throw translated;
        }
        finally
        {
            Leave();
        }
    }

    /// <summary>
    /// From now on what a read meets is the disposal. Takes control records that nobody read (session tickets, close_notify):
    /// closing a socket with unread bytes resets the connection, and what the peer has not fetched yet from this end's send
    /// buffer would be lost with it.
    /// </summary>
    public void Close()
    {
        _closed = true;
        if (_ended || _connection.IsSocketClosed)
        {
            return;
        }

        try
        {
            NativeResult result;
            do
            {
                result = _connection.Read(Span<byte>.Empty);
                NoteSession(result);
            }
            while (result.Messages > 0 && _messages.TryTake(result.Messages) && result.Status == NativeStatus.WantRead);
        }
        catch (Exception e) when (e is InvalidOperationException or IOException)
        {
            // Disposed meanwhile, or in the midst of a negotiation: there is nothing left to take.
            _failure ??= e;
        }
    }

    public void Dispose()
    {
        // A read that is still being woken uses its arguments; the finalizer then has them.
        if (Interlocked.Exchange(ref _reading, 1) == 0)
        {
            _spareOperation?.Dispose();
            _held.Release();
        }
    }

    private void Enter()
    {
        if (Interlocked.Exchange(ref _reading, 1) != 0)
        {
            throw new NotSupportedException("This method may not be called while another read operation is pending.");
        }
    }

    private void Leave() => Volatile.Write(ref _reading, 0);

    /// <summary>What an operation meets when the stream is disposed under it is the disposal, whatever the socket calls it.</summary>
    private Exception Translate(Exception e) =>
        _closed && e is not (OperationCanceledException or ObjectDisposedException)
            ? new ObjectDisposedException(nameof(KtlsStream), e)
            : e;

    /// <summary>What needs no wait: held bytes, OpenSSL's own, what a wait found at the socket; the end, an earlier failure.</summary>
    private bool TryTake(Span<byte> buffer, out int taken)
    {
        taken = 0;
        if (!_held.IsEmpty)
        {
            taken = _held.Take(buffer);
            return true;
        }

        ThrowIfFailed();
        if (_ended)
        {
            return true;
        }

        if (!_askOpenSsl && _readable && TryTakeFromSocket(buffer, out taken))
        {
            return true;
        }

        return _askOpenSsl && TryTakeFromOpenSsl(buffer, out taken);
    }

    private bool TryTakeFromSocket(Span<byte> buffer, out int taken)
    {
        taken = 0;
        bool direct = buffer.Length >= SmallRead;
        SocketOutcome? outcome = direct ? _socket.TryReceive(buffer) : _held.Fill(_socket);

        // A receive that filled its buffer has probably left something.
        _readable = outcome is { } filled && filled.Bytes == (direct ? buffer.Length : HeldBytes.Capacity);
        if (outcome is not { } received || !TryAccept(received, out taken))
        {
            return false;
        }

        taken = direct ? taken : _held.Take(buffer);
        return true;
    }

    private bool TryTakeFromOpenSsl(Span<byte> buffer, out int taken)
    {
        taken = 0;
        NativeResult result = _connection.Read(buffer);
        NoteSession(result);
        if (result.Messages > 0)
        {
            KtlsMeter.Received(result.Messages);
            if (!_messages.TryTake(result.Messages))
            {
                throw Fail(TlsErrors.Flood());
            }
        }

        if (result.KeyUpdateDue)
        {
            _sender.AnswerKeyUpdate();
        }

        // Once OpenSSL has nothing left, a kernel path goes back to the socket; SSL_read may have fetched data along with the
        // control record, and must then be asked until it is handed out.
        _askOpenSsl = !_kernel || result.Pending;
        switch (result.Status)
        {
            case NativeStatus.Ok:
                taken = (int)result.Bytes;
                _messages.Renew();
                return true;
            case NativeStatus.WantRead:
                ThrowIfFailed();
                return false;
            case NativeStatus.WantWrite:
                ThrowIfFailed();
                _obstacle = Obstacle.Room;
                _askOpenSsl = true;
                return false;
            case NativeStatus.WantCertificate:
                _obstacle = Obstacle.Certificate;
                _askOpenSsl = true;
                return false;
            case NativeStatus.CloseNotify:
                _ended = true;
                return true;
            case NativeStatus.Syscall when GoesOnAfter(TlsErrors.ToSocketError(result.SysErrno)):
                return false;
            default:
                throw Fail(TlsErrors.Read(result, _canRekey));
        }
    }

    private void NoteSession(in NativeResult result)
    {
        if (result.NewSession)
        {
            _keepSession?.Invoke();
        }
    }

    /// <summary>What a receive brought: data, or a record for OpenSSL.</summary>
    private bool TryAccept(SocketOutcome outcome, out int taken)
    {
        taken = outcome.Bytes;
        if (outcome.IsForOpenSsl)
        {
            _askOpenSsl = true;
            return false;
        }

        if (outcome.Error != SocketError.Success)
        {
            return GoesOnAfter(outcome.Error) ? false : throw Fail(outcome.Error);
        }

        _messages.Renew();
        return taken > 0 ? true : throw Fail(_socketFailure ?? TlsErrors.Truncated());
    }

    /// <summary>What a wait brought: what there is to read is yet to be seen.</summary>
    private void Accept(SocketOutcome outcome)
    {
        if (outcome.IsForOpenSsl)
        {
            _askOpenSsl = true;
            return;
        }

        if (outcome.Error != SocketError.Success && !GoesOnAfter(outcome.Error))
        {
            throw Fail(outcome.Error);
        }

        _readable = true;
    }

    /// <summary>The socket's first error on a kernel path: what it received before is asked for, then the error is told.</summary>
    private bool GoesOnAfter(SocketError error)
    {
        if (!_kernel || _socketFailure is not null || error is SocketError.TimedOut or SocketError.OperationAborted)
        {
            return false;
        }

        _socketFailure = TlsErrors.Read(error);
        _readable = true;
        return true;
    }

    private Exception Fail(SocketError error)
    {
        // A timeout leaves the connection as it was; anything else is its end.
        IOException failure = TlsErrors.Read(error);
        return error is SocketError.TimedOut ? failure : Fail(_socketFailure ?? failure);
    }

    private void ThrowIfFailed()
    {
        if (_failure is { } failure || (failure = _sender.Failure) is not null)
        {
            throw failure;
        }
    }

    private Exception Fail(Exception failure)
    {
        if (!_closed)
        {
            KtlsEventSource.Log.ConnectionFailed(failure);
            KtlsMeter.ConnectionFailed(failure);
        }

        _failure = failure;
        return failure;
    }
}
