using System.Net.Sockets;
using KernelTls.Diagnostics;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Reads received bytes without waiting: buffered ones, those of the socket if the kernel decrypts, or those of OpenSSL.
/// Used by one read at a time.
/// </summary>
/// <remarks>
/// <para>
/// Buffered bytes come first. Then <see cref="Source"/> names the place of the next ones. Each step returns bytes, changes
/// the source, or fails. The table "Results of a receive" in docs/architecture/receiving.md maps each result to a source.
/// </para>
/// <code>
/// Wait ──readable──▶ Socket (kernel) | OpenSsl            Socket ──nothing has arrived──▶ Wait
/// Wait, Socket ──control record, refused record──▶ OpenSsl ──nothing left──▶ Wait
/// OpenSsl ──must send first──▶ OpenSslWhenWritable | OpenSslAfterCertificate ──sent──▶ OpenSsl
/// OpenSsl ──close_notify──▶ Ended                         any ──failure──▶ later reads throw the same exception
/// </code>
/// <para>
/// FIN without close_notify is an end of its own kind, or a failure if the options say so. Within a record it is always a failure.
/// </para>
/// </remarks>
internal sealed partial class RecordReader
{
    private readonly TlsConnection _connection;
    private readonly TlsSender _sender;
    private readonly SocketReceiver _socket;
    private readonly bool _canRekey;
    private readonly bool _requiresCloseNotify;
    private readonly Action? _storeSession;
    private ReceiveBuffer _buffer;
    private PaddingCheck _paddingCheck;
    private HandshakeMessageLimiter _limiter = new(TimeProvider.System);
    private long _messagesRead;
    private Exception? _failure;

    /// <summary>
    /// The error by which the connection was lost. The kernel reports it once, before records that its parser has not
    /// reached (tls_sw.c, tls_rx_rec_wait), whereas TCP delivers what arrived before the error. Reads therefore continue
    /// until nothing is left, and then throw this exception.
    /// </summary>
    private IOException? _lost;

    /// <summary>
    /// The errno of a record that the kernel refused and reported to a send, or 0. Reads continue until nothing is left in front
    /// of the record. Then OpenSSL gets the errno, because the kernel does not report it again.
    /// </summary>
    private int _refused;

    private bool _endedWithoutCloseNotify;
    private volatile bool _closed;

    /// <inheritdoc cref="TlsReceiver(TlsConnection, TlsSender, SocketReceiver, bool, bool, bool, bool, Action?, Action)" path="/param"/>
    public RecordReader(
        TlsConnection connection,
        TlsSender sender,
        SocketReceiver socket,
        bool kernel,
        bool pending,
        bool canRekey,
        bool requiresCloseNotify,
        Action? storeSession)
    {
        _connection = connection;
        _sender = sender;
        _socket = socket;
        IsKernel = kernel;
        _canRekey = canRekey;
        _requiresCloseNotify = requiresCloseNotify;
        _storeSession = storeSession;
        Source = pending || !kernel ? ReadSource.OpenSsl : ReadSource.Wait;
    }

    /// <summary>Gets a value that indicates whether the kernel decrypts.</summary>
    public bool IsKernel { get; }

    /// <summary>Gets the place of the next bytes.</summary>
    public ReadSource Source { get; private set; }

    /// <summary>Gets a value that indicates whether the peer's FIN ended the stream without close_notify. Thread-safe.</summary>
    public bool EndedWithoutCloseNotify
    {
        get => Volatile.Read(ref _endedWithoutCloseNotify);
        private set => Volatile.Write(ref _endedWithoutCloseNotify, value);
    }

    /// <summary>Gets a value that indicates whether the stream was disposed. Thread-safe.</summary>
    public bool IsClosed => _closed;

    /// <summary>Gets the source to use after a wait.</summary>
    private ReadSource AfterWait => IsKernel ? ReadSource.Socket : ReadSource.OpenSsl;

    /// <summary>Gets the source to use when the last one has nothing more. What cannot bring more is not waited for.</summary>
    private ReadSource Next => _lost is null && _refused == 0 ? ReadSource.Wait : ReadSource.Socket;

    /// <summary>
    /// Gets a value that indicates whether the peer's FIN arrived before the connection was lost. A reset is EPIPE then
    /// (tcp_input.c, tcp_reset), and TCP would still report the end of the stream, which kernel TLS reports after the error.
    /// </summary>
    private bool EndedBeforeLoss => _lost?.InnerException is SocketException { SocketErrorCode: SocketError.Shutdown };

    /// <summary>Reads bytes, the end of the stream, or an earlier failure, without waiting.</summary>
    /// <param name="buffer">The caller's buffer.</param>
    /// <param name="bytesRead">The number of bytes read: 0 at the end, and for an empty buffer if data is ready.</param>
    /// <returns><see langword="false"/> if <see cref="Source"/> is one that the caller must wait for.</returns>
    public bool TryRead(Span<byte> buffer, out int bytesRead)
    {
        bool hasResult = TryReadNext(buffer, out bytesRead);
        ThrowIfClosed();
        return hasResult;
    }

    private bool TryReadNext(Span<byte> buffer, out int bytesRead)
    {
        bytesRead = 0;
        if (!_buffer.IsEmpty)
        {
            bytesRead = _buffer.Read(buffer);
            return true;
        }

        while (true)
        {
            ThrowIfFailed();
            switch (Source)
            {
                case ReadSource.Ended:
                    return true;
                case ReadSource.Socket:
                    if (TryReadFromSocket(buffer, out bytesRead))
                    {
                        return true;
                    }

                    break;
                case ReadSource.OpenSsl:
                    if (TryReadFromOpenSsl(buffer, out bytesRead))
                    {
                        bytesRead += ReadMoreFromOpenSsl(buffer[bytesRead..]);
                        return true;
                    }

                    break;
                default:
                    return false;
            }
        }
    }

    /// <summary>Processes the result of a receive into memory.</summary>
    /// <param name="result">The result.</param>
    /// <param name="hasMore">Whether the next read need not wait.</param>
    /// <param name="bytesRead">The number of bytes received.</param>
    /// <returns><see langword="false"/> if the receive returned no data.</returns>
    public bool TryProcessReceive(SocketReceiveResult result, bool hasMore, out int bytesRead)
    {
        bytesRead = result.Bytes;
        if (result.Error != SocketError.Success)
        {
            HandleError(result);
            return false;
        }

        if (bytesRead == 0)
        {
            if (_lost is not null && !EndedBeforeLoss)
            {
                throw Fail(_lost);
            }

            // OpenSSL decides whether a FIN is an end or a truncation, because it knows the options.
            PassRefusedRecord();
            Source = ReadSource.OpenSsl;
            return false;
        }

        ThrowIfClosed();
        _paddingCheck.Count(_socket.Socket);
        _limiter.AddReceivedData();
        Source = hasMore ? ReadSource.Socket : Next;
        return true;
    }

    /// <summary>Processes the result of a zero-byte receive, which waits until the socket is readable.</summary>
    public void ProcessWait(SocketReceiveResult result)
    {
        if (result.Error == SocketError.Success)
        {
            EndWait();
        }
        else
        {
            HandleError(result);
        }
    }

    /// <summary>Makes the next step try the source that may have bytes after a wait.</summary>
    public void EndWait() => Source = AfterWait;

    /// <summary>Makes the next step call SSL_read, because OpenSSL has sent the record that it had to send first.</summary>
    public void EndPendingSend() => Source = ReadSource.OpenSsl;

    /// <summary>Makes the next step call SSL_read, because OpenSSL reads the socket from now on and may then hold data.</summary>
    public void SwitchToOpenSsl() => Source = Source is ReadSource.Wait or ReadSource.Socket ? ReadSource.OpenSsl : Source;

    /// <summary>Counts the handshake messages that OpenSSL has processed, and fails the connection if they are too many.</summary>
    /// <param name="result">The result of the call that processed them.</param>
    /// <exception cref="KtlsRekeyException">The peer has sent too many messages.</exception>
    public void CountMessages(in NativeResult result)
    {
        if (result.Messages > 0)
        {
            _messagesRead += result.Messages;
            KtlsMeter.Received(result.Messages);
            if (!_limiter.TryAcquire(result.Messages, _sender.RecordsSent))
            {
                throw Fail(TlsErrors.TooManyMessages());
            }
        }
    }

    /// <summary>Begins to check whether the kernel still should expect no padding.</summary>
    public void Check(in PaddingCheck check) => _paddingCheck = check;

    /// <summary>Returns the buffer to the pool.</summary>
    public void ReleaseBuffer() => _buffer.Release();

    private bool TryReadFromSocket(Span<byte> buffer, out int bytesRead)
    {
        bytesRead = 0;
        if (_buffer.Receive(_socket, buffer, out bool isDirect) is not { } result)
        {
            Source = _lost is not null ? throw Fail(_lost) : PassRefusedRecord() ? ReadSource.OpenSsl : ReadSource.Wait;
            return false;
        }

        if (!TryProcessReceive(result, hasMore: _buffer.IsStreaming, out bytesRead))
        {
            return false;
        }

        bytesRead = isDirect ? bytesRead : _buffer.Read(buffer);
        return true;
    }

    private bool TryReadFromOpenSsl(Span<byte> buffer, out int bytesRead)
    {
        bytesRead = 0;
        NativeResult result = _connection.Read(buffer);
        StoreNewSession(result);
        CountMessages(result);
        if (result.KeyUpdateDue)
        {
            _sender.Gate.RequestAnswer();
        }

        switch (result.Status)
        {
            case NativeStatus.Ok:
                // If the kernel decrypts, SSL_read may have fetched data along with a control record. Otherwise one receive may
                // have taken many records.
                Source = result.Pending ? ReadSource.OpenSsl : Next;
                bytesRead = (int)result.Bytes;
                _limiter.AddReceivedData();
                return true;
            case NativeStatus.WantRead:
                Source = result.MayHaveAnotherMessage ? ReadSource.OpenSsl : Next;
                return false;
            case NativeStatus.WantWrite:
                Source = ReadSource.OpenSslWhenWritable;
                return false;
            case NativeStatus.WantCertificate:
                Source = ReadSource.OpenSslAfterCertificate;
                return false;
            case NativeStatus.CloseNotify:
                Source = ReadSource.Ended;
                return true;
            case NativeStatus.Eof when _requiresCloseNotify:
                throw Fail(_lost ?? TlsErrors.Truncated());
            case NativeStatus.Eof:
                EndWithoutCloseNotify();
                return true;
            case NativeStatus.UnexpectedEof:
                throw Fail(_lost ?? TlsErrors.Truncated());
            case NativeStatus.Syscall when result.SysErrno != Errno.KeyExpired:
                HandleConnectionLoss(TlsErrors.ToSocketError(result.SysErrno));
                return false;
            default:
                Exception failure = Fail(TlsErrors.Read(result, _canRekey));
                _sender.Gate.Abandon(failure);
                throw failure;
        }
    }

    private void EndWithoutCloseNotify()
    {
        Source = ReadSource.Ended;
        if (!_closed && !EndedWithoutCloseNotify)
        {
            EndedWithoutCloseNotify = true;
            KtlsEventSource.Log.EndedWithoutCloseNotify();
            KtlsMeter.EndedWithoutCloseNotify();
        }
    }

    private void StoreNewSession(in NativeResult result)
    {
        if (result.NewSession)
        {
            _storeSession?.Invoke();
        }
    }

    /// <summary>
    /// Fills the rest of the caller's buffer with the data of further records that have been received, as SslStream does.
    /// The caller then processes in one go what arrived in many small records, such as WINDOW_UPDATE frames. The next read
    /// finds any other result in <see cref="Source"/>, or throws the exception.
    /// </summary>
    private int ReadMoreFromOpenSsl(Span<byte> buffer)
    {
        int total = 0;
        try
        {
            while (total < buffer.Length && Source == ReadSource.OpenSsl)
            {
                _ = TryReadFromOpenSsl(buffer[total..], out int bytesRead);
                total += bytesRead;
            }
        }
        catch (InvalidOperationException)
        {
            // The server must negotiate first, or the stream was disposed. No read has failed yet.
        }
        catch (Exception e)
        {
            _failure ??= e;
        }

        return total;
    }

    /// <summary>Handles an error of a receive. If it is about a record, OpenSSL takes the record or sends the alert.</summary>
    private void HandleError(SocketReceiveResult result)
    {
        if (result.RecordErrno is not 0 and int errno)
        {
            _connection.ReceiveFailed(errno);
            Source = ReadSource.OpenSsl;
        }
        else
        {
            HandleConnectionLoss(result.Error);
        }
    }

    /// <summary>Records that the connection is lost. If the kernel may still hold earlier data, reads continue with it.</summary>
    private void HandleConnectionLoss(SocketError error)
    {
        IOException failure = TlsErrors.Read(error);
        if (!IsKernel || _lost is not null || error == SocketError.OperationAborted)
        {
            throw Fail(_lost ?? failure);
        }

        _lost = failure;
        Source = ReadSource.Socket;
    }

    /// <summary>
    /// Throws if the stream was disposed. Called after a receive and before its bytes are returned: a stream that is being disposed
    /// may receive what no read gets, and what follows must not be taken for the next bytes.
    /// </summary>
    private void ThrowIfClosed() => ObjectDisposedException.ThrowIf(_closed, typeof(KtlsStream));

    private void ThrowIfFailed()
    {
        if (_failure is { } failure || (failure = _sender.Gate.Failure) is not null)
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
