using System.Buffers;
using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Writes through OpenSSL: its own records, and data if OpenSSL encrypts. Waits for room in the socket's send buffer as often
/// as OpenSSL needs it. The caller must have the turn of the gate.
/// </summary>
internal sealed class OpenSslWriter(TlsConnection connection, Socket socket, SendGate gate)
{
    /// <summary>
    /// Gets or sets the action that selects the certificate before the answer to a CertificateRequest, or
    /// <see langword="null"/> if it is selected already.
    /// </summary>
    public Action? SelectCertificate { get; set; }

    /// <summary>Writes all of <paramref name="data"/>, blocking; the socket's SendTimeout limits each wait.</summary>
    public void Write(ReadOnlySpan<byte> data)
    {
        for (int refusals = 0; ;)
        {
            NativeResult result = connection.Write(data);
            data = data[(int)result.Bytes..];
            switch (result.Status)
            {
                case NativeStatus.Ok when data.IsEmpty:
                    return;
                case NativeStatus.Ok:
                    refusals = 0;
                    break;
                case NativeStatus.WantWrite:
                    if (!SocketReadiness.WaitForRoom(socket, ref refusals))
                    {
                        throw TlsErrors.Socket(TlsErrors.CannotWrite, SocketError.TimedOut);
                    }

                    break;
                case NativeStatus.WantCertificate:
                    SocketTimeouts.Within(socket.SendTimeout, TlsErrors.CannotWrite, AnswerCertificateRequestAsync);
                    break;
                default:
                    throw TlsErrors.Write(result);
            }
        }
    }

    /// <summary>Writes all of <paramref name="data"/>.</summary>
    public async ValueTask WriteAsync(ReadOnlyMemory<byte> data, CancellationToken cancellationToken)
    {
        for (int refusals = 0; ;)
        {
            NativeResult result = connection.Write(data.Span);
            data = data[(int)result.Bytes..];
            switch (result.Status)
            {
                case NativeStatus.Ok when data.IsEmpty:
                    return;
                case NativeStatus.Ok:
                    refusals = 0;
                    break;
                case NativeStatus.WantWrite:
                    refusals = await WaitForSendBufferAsync(refusals, cancellationToken).ConfigureAwait(false);
                    break;
                case NativeStatus.WantCertificate:
                    await AnswerCertificateRequestAsync(cancellationToken).ConfigureAwait(false);
                    break;
                default:
                    throw TlsErrors.Write(result);
            }
        }
    }

    /// <summary>Writes all of <paramref name="data"/>, in parts that the key may send. Small segments share records.</summary>
    public async ValueTask WriteAsync(ReadOnlySequence<byte> data, SendKeys keys, CancellationToken cancellationToken)
    {
        if (data.IsSingleSegment)
        {
            for (ReadOnlyMemory<byte> left = data.First; !left.IsEmpty;)
            {
                ReadOnlyMemory<byte> part = left[..await keys.ReserveAsync(left.Length, cancellationToken).ConfigureAwait(false)];
                await WriteAsync(part, cancellationToken).ConfigureAwait(false);
                left = left[part.Length..];
            }

            return;
        }

        SegmentCoalescer segments = new(data);
        try
        {
            while (segments.NextLength is > 0 and int wanted)
            {
                int length = await keys.ReserveAsync(wanted, cancellationToken).ConfigureAwait(false);
                await WriteAsync(segments.Next(length), cancellationToken).ConfigureAwait(false);
            }
        }
        finally
        {
            // After a failure OpenSSL is not called again, so it no longer uses the buffer.
            segments.Dispose();
        }
    }

    /// <summary>
    /// Sends the response to the peer's CertificateRequest, which a read has received (RFC 8446, section 4.6.2). OpenSSL
    /// sends no data before it.
    /// </summary>
    public async Task AnswerCertificateRequestAsync(CancellationToken cancellationToken)
    {
        SelectCertificate?.Invoke();

        // A read with an empty buffer makes OpenSSL send the response. The next read reports any other result.
        NativeStatus status;
        int refusals = 0;
        while ((status = connection.Read(Span<byte>.Empty).Status) is NativeStatus.WantWrite or NativeStatus.WantCertificate)
        {
            if (status == NativeStatus.WantWrite)
            {
                refusals = await WaitForSendBufferAsync(refusals, cancellationToken).ConfigureAwait(false);
            }
        }
    }

    /// <summary>Calls <paramref name="write"/>, which writes one of OpenSSL's own records, until the record is sent.</summary>
    public async Task WriteAsync(Func<TlsConnection, NativeResult> write, CancellationToken cancellationToken)
    {
        for (int refusals = 0; ;)
        {
            NativeResult result = write(connection);
            switch (result.Status)
            {
                case NativeStatus.Ok:
                    return;
                case NativeStatus.WantWrite:
                    refusals = await WaitForSendBufferAsync(refusals, cancellationToken).ConfigureAwait(false);
                    break;
                default:
                    throw TlsErrors.Write(result);
            }
        }
    }

    /// <summary>Waits for room after a write that found too little. The next write shows whether there is enough.</summary>
    /// <param name="refusals">The result of the wait before this one, or 0 if there was progress since.</param>
    /// <param name="cancellationToken">The token that cancels the wait.</param>
    /// <returns>The result of <see cref="SocketReadiness.WaitForRoomAsync"/>.</returns>
    public async Task<int> WaitForSendBufferAsync(int refusals, CancellationToken cancellationToken)
    {
        using CancellationTokenSource either = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken, gate.Disposed);
        try
        {
            return await SocketReadiness.WaitForRoomAsync(socket, refusals, either.Token).ConfigureAwait(false);
        }
        catch (OperationCanceledException) when (gate.IsDisposed)
        {
            throw new ObjectDisposedException(nameof(KtlsStream));
        }
        catch (OperationCanceledException e) when (cancellationToken.IsCancellationRequested)
        {
            throw new OperationCanceledException(e.Message, e, cancellationToken);
        }
    }

    /// <summary>
    /// Waits until the socket is writable. It then has more room than a KeyUpdate needs. OpenSSL reads nothing while its KeyUpdate is
    /// partly sent, and two ends in that state would wait for each other. A socket with an error is always ready; the next
    /// send reports the error.
    /// </summary>
    public async ValueTask WaitUntilWritableAsync(CancellationToken cancellationToken)
    {
        while (!socket.Poll(TimeSpan.Zero, SelectMode.SelectWrite) && !socket.Poll(TimeSpan.Zero, SelectMode.SelectError))
        {
            await WaitForSendBufferAsync(0, cancellationToken).ConfigureAwait(false);
        }
    }
}
