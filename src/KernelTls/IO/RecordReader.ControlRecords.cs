using KernelTls.Interop;

namespace KernelTls.IO;

// Control records that no read takes: those that arrive while the application only sends, or before it disposes the stream.
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
        long before = _messagesRead;
        Source = ReadSource.OpenSsl;
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

    /// <summary>
    /// Makes later reads report the disposal, and takes control records that no read has taken (session tickets,
    /// close_notify). Closing a socket with unread bytes resets the connection, which would discard the data in this end's
    /// send buffer.
    /// </summary>
    public void Close()
    {
        _closed = true;
        if (Source == ReadSource.Ended || _connection.IsSocketClosed)
        {
            return;
        }

        try
        {
            NativeResult result;
            do
            {
                if (!_connection.TryReadControlRecord(out result))
                {
                    return;
                }

                StoreNewSession(result);
            }
            while (result.Messages > 0 && _limiter.TryAcquire(result.Messages, _sender.RecordsSent) && result.Status == NativeStatus.WantRead);
        }
        catch (Exception e) when (e is InvalidOperationException or IOException)
        {
            // Another thread disposed the connection, or it is negotiating: no record can be taken.
            _failure ??= e;
        }
    }
}
