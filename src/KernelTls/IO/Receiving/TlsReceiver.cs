using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Represents the receiving half of a connection. <see cref="RecordReader"/> reads the bytes that have arrived; this type and
/// <see cref="ReadOperation"/> wait for more. One read may be pending at a time.
/// </summary>
/// <remarks>
/// <para>
/// If the kernel decrypts, a socket receive fills the caller's memory with the data of as many records as have arrived, and
/// OpenSSL takes the records that are not data. Otherwise SSL_read takes all records.
/// </para>
/// <para>
/// A read that need not wait returns at once. A read that has to wait is a value task source over the socket's own
/// completion. It needs no state machine, allocation or exception. An empty read waits without a buffer.
/// </para>
/// </remarks>
internal sealed class TlsReceiver : IDisposable
{
    // Values of _state.
    private const int Idle = 0;
    private const int Reading = 1;
    private const int TakingRecords = 2;
    private const int Closed = 3;

    private readonly RecordReader _reader;
    private readonly SocketReceiver _socket;
    private readonly TlsConnection _connection;
    private readonly TlsSender _sender;
    private readonly Action _certificateSent;
    private ReadOperation? _spareOperation;

    /// <summary>The result of <see cref="SocketReadiness.WaitForRoomAsync"/> in the present read, for a record that OpenSSL must send first.</summary>
    private int _refusals;

    /// <summary>
    /// Who has the turn to receive. Only its owner receives from the socket, directly or through OpenSSL: if OpenSSL received while a
    /// direct receive may run, the order in which the two take records would be unknown.
    /// </summary>
    private int _state;

    /// <summary>Held while records are taken without a read. A read that begins meanwhile waits until the current message is complete.</summary>
    private readonly Lock _takingRecords = new();
    private volatile bool _readIsWaiting;

    /// <summary>The errno of a send that failed while a read was in progress, or 0.</summary>
    private volatile int _refusedDuringRead;

    /// <param name="connection">The connection.</param>
    /// <param name="sender">The sending half, which answers the peer's KeyUpdates.</param>
    /// <param name="socket">The connection's socket.</param>
    /// <param name="kernel">Whether the kernel decrypts.</param>
    /// <param name="pending">Whether OpenSSL holds bytes from the last flight of the handshake.</param>
    /// <param name="canRekey">Whether the kernel accepts a second key.</param>
    /// <param name="requiresCloseNotify">Whether FIN without close_notify is a failure.</param>
    /// <param name="storeSession">The action that stores a session of the server, or <see langword="null"/> if none is wanted.</param>
    /// <param name="certificateSent">The action to call after a request after the handshake was answered with the own certificate.</param>
    public TlsReceiver(
        TlsConnection connection,
        TlsSender sender,
        SocketReceiver socket,
        bool kernel,
        bool pending,
        bool canRekey,
        bool requiresCloseNotify,
        Action? storeSession,
        Action certificateSent)
    {
        _reader = new RecordReader(connection, sender, socket, kernel, pending, canRekey, requiresCloseNotify, storeSession);
        _socket = socket;
        _connection = connection;
        _sender = sender;
        _certificateSent = certificateSent;
    }

    /// <summary>Reads bytes. Returns 0 at the end of the stream, and for an empty buffer when data is ready.</summary>
    public ValueTask<int> ReceiveAsync(Memory<byte> buffer, CancellationToken cancellationToken)
    {
        BeginRead();
        if (cancellationToken.IsCancellationRequested)
        {
            EndRead();
            return ValueTask.FromCanceled<int>(cancellationToken);
        }

        // Null if the value task of an earlier read has completed but its result was not yet retrieved.
        ReadOperation operation = _spareOperation ?? new ReadOperation(this, _reader, _socket);
        _spareOperation = null;
        try
        {
            short version = operation.Begin(buffer, cancellationToken);
            if (operation.TryRun(out int bytesRead))
            {
                operation.ClearReferences();
                _spareOperation = operation;
                EndRead();
                return new ValueTask<int>(bytesRead);
            }

            return new ValueTask<int>(operation, version);
        }
        catch (Exception e)
        {
            operation.ClearReferences();
            EndRead();
            return ValueTask.FromException<int>(Translate(e));
        }
    }

    /// <summary>Reads bytes like <see cref="ReceiveAsync"/>, but blocks. The socket's ReceiveTimeout limits each wait.</summary>
    public int Receive(Span<byte> buffer)
    {
        BeginRead();
        try
        {
            int bytesRead;
            bool isLate = false;
            if (_reader.Source == ReadSource.Wait)
            {
                _reader.EndWait();
            }

            while (!_reader.TryRead(buffer, out bytesRead))
            {
                if (_reader.Source != ReadSource.Wait)
                {
                    CompletePendingSend();
                    isLate = false;
                }
                else if (isLate)
                {
                    throw TlsErrors.Read(SocketError.TimedOut);
                }
                else
                {
                    isLate = !_socket.WaitReadable();
                    _reader.EndWait();
                }
            }

            return bytesRead;
        }
        catch (Exception e) when (Translate(e) is var translated && translated != e)
        {
            throw translated;
        }
        finally
        {
            EndRead();
        }
    }

    /// <summary>
    /// Runs <paramref name="work"/>, in which OpenSSL reads the socket, and prevents other reads while it runs: a server's
    /// request for a certificate after the handshake (RFC 8446, section 4.6.2).
    /// </summary>
    /// <exception cref="NotSupportedException">A read is pending.</exception>
    public async Task RunExclusiveAsync(Func<Task> work)
    {
        BeginRead();
        try
        {
            _reader.SwitchToOpenSsl();
            await work().ConfigureAwait(false);
        }
        catch (Exception e) when (Translate(e) is var translated && translated != e)
        {
            throw translated;
        }
        finally
        {
            EndRead();
        }
    }

    /// <summary>
    /// Reads the control records that have arrived, without waiting, unless a read is in progress. Otherwise an application
    /// that only sends would leave the peer's KeyUpdates unread, and the peer would repeat them with each record that it
    /// receives (RFC 8446, section 4.6.3). Called in the sender's turn.
    /// </summary>
    public void DrainControlRecords()
    {
        if (Volatile.Read(ref _state) == Idle && HasArrived())
        {
            TakeRecords(static (receiver, _) =>
            {
                while (!receiver._readIsWaiting && receiver._reader.CanReadControlRecord && receiver._reader.TryReadControlRecord())
                {
                }
            });
        }
    }

    /// <summary>
    /// Handles a record that the kernel has refused and reported to a send, so that the peer gets the alert even if the application
    /// does not read. A read in progress does that itself, because the kernel wakes it with an error, or else the disposal.
    /// </summary>
    /// <inheritdoc cref="RecordReader.TakeRefusedRecord" path="/param"/>
    public void TakeRefusedRecord(int errno)
    {
        if (!TakeRecords(static (receiver, errno) => receiver._reader.TakeRefusedRecord(errno), errno))
        {
            _refusedDuringRead = errno;
        }
    }

    /// <inheritdoc cref="RecordReader.EndedWithoutCloseNotify"/>
    public bool EndedWithoutCloseNotify => _reader.EndedWithoutCloseNotify;

    /// <inheritdoc cref="RecordReader.TryHoldData"/>
    public bool TryHoldData() => _reader.TryHoldData();

    /// <inheritdoc cref="RecordReader.Check"/>
    public void Check(in PaddingCheck check) => _reader.Check(check);

    /// <inheritdoc cref="RecordReader.CountMessages"/>
    public void CountMessages(in NativeResult result) => _reader.CountMessages(result);

    /// <summary>
    /// Ends receiving. No read returns anything from now on, not even the one in progress. Takes the control records that have
    /// arrived, unless a read is in progress: that one has taken them.
    /// </summary>
    public void Close()
    {
        _reader.Close();
        if (Interlocked.CompareExchange(ref _state, Closed, Idle) == Idle)
        {
            _reader.ReadLastControlRecords();
        }
        else if (_refusedDuringRead is not 0 and int errno)
        {
            _reader.SendAlert(errno);
        }
    }

    /// <summary>
    /// Sends the alert for a record that the kernel has refused and reported to a send, if no read has done it yet. Called before the
    /// socket is closed under the reads.
    /// </summary>
    public void SendAlert()
    {
        if (!TakeRecords(static (receiver, _) => receiver._reader.SendAlert()) && _refusedDuringRead is not 0 and int errno)
        {
            _reader.SendAlert(errno);
        }
    }

    public void Dispose()
    {
        // A pending read still uses its operation, which the finalizer then disposes.
        if (Interlocked.CompareExchange(ref _state, Closed, Idle) is Idle or Closed)
        {
            _spareOperation?.Dispose();
            _reader.ReleaseBuffer();
        }
    }

    /// <summary>Lets OpenSSL send the record that it must send before it can read.</summary>
    internal async Task CompletePendingSendAsync(CancellationToken cancellationToken)
    {
        if (_reader.Source == ReadSource.OpenSslWhenWritable)
        {
            _refusals = await SocketReadiness.WaitForRoomAsync(_socket.Socket, _refusals, cancellationToken).ConfigureAwait(false);
        }
        else
        {
            await _sender.AnswerCertificateRequestAsync(cancellationToken).ConfigureAwait(false);
            _certificateSent();
        }

        _reader.EndPendingSend();
    }

    /// <summary>Keeps an operation for the next read.</summary>
    internal void Reuse(ReadOperation operation) => _spareOperation = operation;

    internal void EndRead() => Volatile.Write(ref _state, Idle);

    /// <summary>Returns the exception for the caller of a read in progress: if the stream was disposed, that of the disposal.</summary>
    internal Exception Translate(Exception e) =>
        _reader.IsClosed && e is not OperationCanceledException ? TlsErrors.Disposed(TlsErrors.CannotRead, e) : e;

    private void BeginRead()
    {
        switch (Interlocked.CompareExchange(ref _state, Reading, Idle))
        {
            case Reading:
                throw new NotSupportedException("This method may not be called while another read operation is pending.");
            case TakingRecords:
                BeginReadAfterRecords();
                break;
            case Idle when _reader.IsClosed:
                EndRead();
                goto case Closed;
            case Closed:
                throw new ObjectDisposedException(nameof(KtlsStream));
        }

        _refusals = 0;
    }

    private void BeginReadAfterRecords()
    {
        _readIsWaiting = true;
        try
        {
            lock (_takingRecords)
            {
                BeginRead();
            }
        }
        finally
        {
            _readIsWaiting = false;
        }
    }

    /// <summary>Completes a pending send like <see cref="CompletePendingSendAsync"/>, but blocks. The socket's ReceiveTimeout limits the wait.</summary>
    private void CompletePendingSend() =>
        SocketTimeouts.Within(_socket.Socket.ReceiveTimeout, TlsErrors.CannotRead, CompletePendingSendAsync);

    /// <summary>Runs <paramref name="take"/>, which receives, in the turn of a read. Returns <see langword="false"/> if a read is in progress.</summary>
    private bool TakeRecords(Action<TlsReceiver, int> take, int errno = 0)
    {
        lock (_takingRecords)
        {
            if (Interlocked.CompareExchange(ref _state, TakingRecords, Idle) != Idle)
            {
                return false;
            }

            try
            {
                take(this, errno);
                return true;
            }
            finally
            {
                EndRead();
            }
        }
    }

    private bool HasArrived()
    {
        try
        {
            // What was received along with earlier records is no longer in the socket.
            return _reader.Source == ReadSource.OpenSsl || _socket.Socket.Available > 0;
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            return false;
        }
    }
}
