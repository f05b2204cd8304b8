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
/// Bytes that are held come first. Then <see cref="Source"/> says where the next ones come from, and ARCHITECTURE.md ("What a
/// receive can come to") which result leads to which source. Each step either gives bytes, changes the source, or fails:
/// </para>
/// <code>
/// Wait ──readable──▶ Socket (kernel) | OpenSsl            Socket ──nothing there──▶ Wait
/// Wait, Socket ──control record, refused record──▶ OpenSsl ──nothing left──▶ Wait
/// OpenSsl ──has to send first──▶ OpenSslAfterRoom | OpenSslAfterCertificate ──sent──▶ OpenSsl
/// OpenSsl ──close_notify──▶ Ended                         any ──failure──▶ the same exception, for ever
/// </code>
/// <para>
/// FIN without close_notify is a failure, never an end. One read at a time: a second one throws.
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

    /// <summary>Where the next bytes come from, once those that are held are handed out.</summary>
    private enum Source
    {
        /// <summary>The socket has to be waited for.</summary>
        Wait,

        /// <summary>A receive that does not wait. Only where the kernel decrypts.</summary>
        Socket,

        /// <summary>SSL_read: OpenSSL decrypts, holds data, or has to see the record that comes next.</summary>
        OpenSsl,

        /// <summary>OpenSSL, once there is room for a record of its own.</summary>
        OpenSslAfterRoom,

        /// <summary>OpenSSL, once it has answered the peer's CertificateRequest.</summary>
        OpenSslAfterCertificate,

        /// <summary>Nowhere: close_notify was received.</summary>
        Ended,
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
    /// The error by which the connection was lost, once the socket has told it. The kernel tells it before the records that its
    /// parser has not come to, and once only (tls_sw.c, tls_rx_rec_wait), while TCP itself gives what arrived first. So a read
    /// goes on to the end of what is there, which is then this failure.
    /// </summary>
    private IOException? _lost;
    private volatile bool _closed;
    private Source _source;
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
        _source = pending || !kernel ? Source.OpenSsl : Source.Wait;
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
            bool isLate = false;
            if (_source == Source.Wait)
            {
                _source = AfterWait;
            }

            while (!TryTake(buffer, out taken))
            {
                if (_source != Source.Wait)
                {
                    Overcome();
                    isLate = false;
                }
                else if (isLate)
                {
                    throw TlsErrors.Read(SocketError.TimedOut);
                }
                else
                {
                    isLate = !_socket.WaitReadable();
                    _source = AfterWait;
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
        if (_source == Source.Ended || _connection.IsSocketClosed)
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

    /// <summary>Gets the source that may have bytes once the socket is readable.</summary>
    private Source AfterWait => _kernel ? Source.Socket : Source.OpenSsl;

    /// <summary>Gets the source to ask when the last one is known to have nothing more: behind a lost connection nothing is waited for.</summary>
    private Source Next => _lost is null ? Source.Wait : Source.Socket;

    /// <summary>
    /// Takes what needs no wait: held bytes, the socket's, OpenSSL's; the end, an earlier failure. Returns
    /// <see langword="false"/> where the source is one that has to be waited for.
    /// </summary>
    private bool TryTake(Span<byte> buffer, out int taken)
    {
        taken = 0;
        if (!_held.IsEmpty)
        {
            taken = _held.Take(buffer);
            return true;
        }

        while (true)
        {
            ThrowIfFailed();
            switch (_source)
            {
                case Source.Ended:
                    return true;
                case Source.Socket:
                    if (TryTakeFromSocket(buffer, out taken))
                    {
                        return true;
                    }

                    break;
                case Source.OpenSsl:
                    if (TryTakeFromOpenSsl(buffer, out taken))
                    {
                        return true;
                    }

                    break;
                default:
                    return false;
            }
        }
    }

    private bool TryTakeFromSocket(Span<byte> buffer, out int taken)
    {
        taken = 0;
        bool direct = buffer.Length >= SmallRead;
        if ((direct ? _socket.TryReceive(buffer) : _held.Fill(_socket)) is not { } outcome)
        {
            _source = _lost is null ? Source.Wait : throw Fail(_lost);
            return false;
        }

        // A receive that filled its buffer has probably left something.
        if (!TryAccept(outcome, hasMore: outcome.Bytes == (direct ? buffer.Length : HeldBytes.Capacity), out taken))
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

        switch (result.Status)
        {
            case NativeStatus.Ok:
                // SSL_read may have fetched data along with a control record: it is asked until that is handed out.
                _source = result.Pending || !_kernel ? Source.OpenSsl : Next;
                taken = (int)result.Bytes;
                _messages.Renew();
                return true;
            case NativeStatus.WantRead:
                // One message a call: what OpenSSL holds behind it may be the next.
                _source = result.Pending && result.Messages > 0 ? Source.OpenSsl : Next;
                return false;
            case NativeStatus.WantWrite:
                _source = Source.OpenSslAfterRoom;
                return false;
            case NativeStatus.WantCertificate:
                _source = Source.OpenSslAfterCertificate;
                return false;
            case NativeStatus.CloseNotify:
                _source = Source.Ended;
                return true;
            case NativeStatus.UnexpectedEof:
                throw Fail(_lost ?? TlsErrors.Truncated());
            case NativeStatus.Syscall:
                Lose(TlsErrors.ToSocketError(result.SysErrno));
                return false;
            default:
                Exception failure = Fail(TlsErrors.Read(result, _canRekey));
                _sender.Abandon(failure);
                throw failure;
        }
    }

    private void NoteSession(in NativeResult result)
    {
        if (result.NewSession)
        {
            _keepSession?.Invoke();
        }
    }

    /// <summary>Accepts what a receive into memory brought. Returns <see langword="false"/> where that is no data.</summary>
    /// <param name="outcome">What the receive came to.</param>
    /// <param name="hasMore">The next read need not wait.</param>
    /// <param name="taken">How much data it brought.</param>
    private bool TryAccept(SocketOutcome outcome, bool hasMore, out int taken)
    {
        taken = outcome.Bytes;
        if (outcome.Error != SocketError.Success)
        {
            Meet(outcome);
            return false;
        }

        if (taken == 0)
        {
            if (_lost is not null)
            {
                throw Fail(_lost);
            }

            // Whether a FIN is an end or a truncation is OpenSSL's to say: it knows what the options allow.
            _source = Source.OpenSsl;
            return false;
        }

        _messages.Renew();
        _source = hasMore ? Source.Socket : Next;
        return true;
    }

    /// <summary>Accepts the end of a wait: what there is to read is yet to be seen.</summary>
    private void Accept(SocketOutcome outcome)
    {
        if (outcome.Error == SocketError.Success)
        {
            _source = AfterWait;
        }
        else
        {
            Meet(outcome);
        }
    }

    /// <summary>Meets an error of a receive. What is about a record goes to OpenSSL, which takes the record or sends the alert.</summary>
    private void Meet(SocketOutcome outcome)
    {
        if (outcome.RecordErrno is not 0 and int errno)
        {
            _connection.ReceiveFailed(errno);
            _source = Source.OpenSsl;
        }
        else
        {
            Lose(outcome.Error);
        }
    }

    /// <summary>Notes that the connection is lost: what came before goes on to be read, where the kernel may have kept it back.</summary>
    private void Lose(SocketError error)
    {
        IOException failure = TlsErrors.Read(error);
        if (!_kernel || _lost is not null || error == SocketError.OperationAborted)
        {
            throw Fail(_lost ?? failure);
        }

        _lost = failure;
        _source = Source.Socket;
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
