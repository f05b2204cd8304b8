using KernelTls.Interop;

namespace KernelTls.IO;

// Control records that no read takes: those that arrive while the application only sends, or before it disposes the stream.
// And data in front of one that is needed first.
internal sealed partial class RecordReader
{
    /// <summary>Gets a value that indicates whether a control record may be read while the application does not read.</summary>
    public bool CanReadControlRecord =>
        !_closed && _failure is null && _lost is null && _buffer.IsEmpty
        && Source is ReadSource.Wait or ReadSource.Socket or ReadSource.OpenSsl;

    /// <summary>Reads one control record. Data stays for the next read, which also throws any failure.</summary>
    /// <returns>Whether another record may follow.</returns>
    public bool TryReadControlRecord()
    {
        Source = ReadSource.OpenSsl;
        return TryReadWithoutData();
    }

    /// <summary>
    /// Moves the data that OpenSSL holds into the buffer, for later reads: what follows it is needed first. Returns
    /// <see langword="false"/> if the buffer is full.
    /// </summary>
    public bool TryHoldData()
    {
        Span<byte> room = _buffer.GetRoom();
        if (room.IsEmpty)
        {
            return false;
        }

        int bytesRead = 0;
        try
        {
            _ = TryReadFromOpenSsl(room, out bytesRead);
        }
        finally
        {
            _buffer.Append(bytesRead);
        }

        return true;
    }

    /// <summary>
    /// Handles a record that the kernel has refused and reported to a send. If nothing is left in front of it, OpenSSL sends the
    /// alert and the connection fails. Otherwise the reads that follow do that after the data.
    /// </summary>
    /// <param name="errno">
    /// The <see cref="SocketReceiveResult.RecordErrno"/> of the send. If it is EIO, there may be no such record, or the kernel reports
    /// it once more.
    /// </param>
    public void TakeRefusedRecord(int errno)
    {
        if (!IsKernel || _closed || _failure is not null || _lost is not null
            || Source is not (ReadSource.Wait or ReadSource.Socket or ReadSource.OpenSsl))
        {
            return;
        }

        if (errno != Errno.InputOutput)
        {
            // The kernel has stored EBADMSG in place of the error that the send took (tls_sw.c, tls_tx_records).
            _refused = errno;
            _socket.ClearError();
        }

        Source = Source == ReadSource.Wait ? ReadSource.Socket : Source;
        if (_buffer.IsEmpty)
        {
            TryReadWithoutData();
        }
    }

    /// <summary>Makes later reads, and the one in progress, report the disposal. Thread-safe.</summary>
    public void Close() => _closed = true;

    /// <summary>
    /// Takes control records that no read has taken (session tickets, close_notify). Closing a socket with unread bytes resets the
    /// connection, which would discard the data in this end's send buffer.
    /// </summary>
    public void ReadLastControlRecords()
    {
        if (Source == ReadSource.Ended || _connection.IsSocketClosed)
        {
            return;
        }

        try
        {
            PassRefusedRecord();
            NativeResult result;
            do
            {
                result = _connection.Read(Span<byte>.Empty);
                StoreNewSession(result);
            }
            while (result.Messages > 0 && _limiter.TryAcquire(result.Messages, _sender.RecordsSent) && result.Status == NativeStatus.WantRead);
        }
        catch (Exception e) when (e is InvalidOperationException or IOException)
        {
            // Other code closed the socket, or the connection is negotiating: no record can be taken.
            _failure ??= e;
        }
    }

    /// <summary>Lets OpenSSL send the alert for the record of <see cref="TakeRefusedRecord"/>, although data in front of it is unread.</summary>
    public void SendAlert()
    {
        if (_refused is not 0 and int errno)
        {
            SendAlert(errno);
        }
    }

    /// <summary>
    /// Lets OpenSSL send the alert for a record that the kernel has refused, when the connection is closed while a read is in progress. OpenSSL
    /// receives nothing, because the shim fails its receive with the errno (ktls_bio.c, BeforeRead).
    /// </summary>
    /// <param name="errno">The <see cref="SocketReceiveResult.RecordErrno"/> of the send that met the record.</param>
    public void SendAlert(int errno)
    {
        if (!IsKernel || _connection.IsSocketClosed)
        {
            return;
        }

        try
        {
            _connection.ReceiveFailed(errno == Errno.InputOutput ? Errno.BadMessage : errno);
            _ = _connection.Read(Span<byte>.Empty);
        }
        catch (Exception e) when (e is InvalidOperationException or IOException)
        {
            // Other code closed the socket.
        }
    }

    /// <summary>Reads until there is data, which stays for the next read, or nothing more.</summary>
    /// <returns>Whether a handshake message was read and nothing else.</returns>
    private bool TryReadWithoutData()
    {
        long before = _messagesRead;
        try
        {
            return !TryRead(Span<byte>.Empty, out _) && _messagesRead > before;
        }
        catch (InvalidOperationException)
        {
            // The stream was disposed or is negotiating. The next read has not failed.
            return false;
        }
        catch (Exception e)
        {
            // No exception may propagate, not even that of an event listener: the sender would never open its gate again.
            _failure ??= e;
            return false;
        }
    }

    /// <summary>Lets OpenSSL fail with the record that the kernel has refused. Returns <see langword="false"/> if there is none.</summary>
    private bool PassRefusedRecord()
    {
        if (_refused == 0)
        {
            return false;
        }

        _connection.ReceiveFailed(_refused);
        _refused = 0;
        return true;
    }
}
