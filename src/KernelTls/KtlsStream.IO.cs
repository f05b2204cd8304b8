using System.Buffers;
using System.Security.Authentication;
using KernelTls.IO;

namespace KernelTls;

// The Stream members. Where the base class shook hands, it also reads and writes.
public partial class KtlsStream
{
    /// <inheritdoc/>
    public override int Read(byte[] buffer, int offset, int count)
    {
        ValidateBufferArguments(buffer, offset, count);
        return Read(buffer.AsSpan(offset, count));
    }

    /// <inheritdoc/>
    public override int Read(Span<byte> buffer)
    {
        if (Alive is not { } session)
        {
            ThrowIfHandshakeFailed();
            return base.Read(buffer);
        }

        return session.Receiver.Receive(buffer);
    }

    /// <inheritdoc/>
    public override int ReadByte()
    {
        byte value = 0;
        return Read(new Span<byte>(ref value)) == 1 ? value : -1;
    }

    /// <inheritdoc/>
    public override Task<int> ReadAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken)
    {
        ValidateBufferArguments(buffer, offset, count);
        return ReadAsync(buffer.AsMemory(offset, count), cancellationToken).AsTask();
    }

    /// <inheritdoc/>
    public override ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
    {
        if (Alive is { } session)
        {
            return session.Receiver.ReceiveAsync(buffer, cancellationToken);
        }

        ThrowIfHandshakeFailed();
        return base.ReadAsync(buffer, cancellationToken);
    }

    /// <inheritdoc/>
    public override IAsyncResult BeginRead(
        byte[] buffer, int offset, int count, AsyncCallback? asyncCallback, object? asyncState) =>
        TaskToAsyncResult.Begin(ReadAsync(buffer, offset, count, CancellationToken.None), asyncCallback, asyncState);

    /// <inheritdoc/>
    public override int EndRead(IAsyncResult asyncResult) =>
        _session is null ? base.EndRead(asyncResult) : TaskToAsyncResult.End<int>(asyncResult);

    /// <inheritdoc/>
    public override void Write(byte[] buffer, int offset, int count)
    {
        ValidateBufferArguments(buffer, offset, count);
        Write(buffer.AsSpan(offset, count));
    }

    /// <inheritdoc/>
    public override void Write(ReadOnlySpan<byte> buffer)
    {
        if (Alive is not { } session)
        {
            ThrowIfHandshakeFailed();
            ThrowIfFileInTheWay();
            base.Write(buffer);
            return;
        }

        session.Sender.Send(buffer);
    }

    /// <inheritdoc/>
    public override void WriteByte(byte value) => Write(new ReadOnlySpan<byte>(in value));

    /// <inheritdoc/>
    public override Task WriteAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken)
    {
        ValidateBufferArguments(buffer, offset, count);
        return WriteAsync(buffer.AsMemory(offset, count), cancellationToken).AsTask();
    }

    /// <inheritdoc/>
    public override ValueTask WriteAsync(ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default)
    {
        if (Alive is { } session)
        {
            return session.Sender.SendAsync(buffer, cancellationToken);
        }

        ThrowIfHandshakeFailed();
        ThrowIfFileInTheWay();
        return base.WriteAsync(buffer, cancellationToken);
    }

    /// <summary>
    /// Writes many segments as one: with kernel TLS by one system call for up to 64 of them, so that small segments share full
    /// records (RFC 8446, section 5.1). Counts as one write. Thread-safety and errors are those of
    /// <see cref="WriteAsync(ReadOnlyMemory{byte}, CancellationToken)"/>.
    /// </summary>
    /// <param name="buffers">The bytes to write; not to be changed before the write has completed.</param>
    /// <param name="cancellationToken">Cancels the write; if it was under way, nothing can follow it.</param>
    public ValueTask WriteAsync(ReadOnlySequence<byte> buffers, CancellationToken cancellationToken = default)
    {
        if (Alive is { } session)
        {
            return session.Sender.SendAsync(buffers, cancellationToken);
        }

        ThrowIfHandshakeFailed();
        ThrowIfFileInTheWay();
        return buffers.IsSingleSegment
            ? base.WriteAsync(buffers.First, cancellationToken)
            : WriteManagedAsync(buffers, cancellationToken);
    }

    /// <inheritdoc/>
    public override IAsyncResult BeginWrite(
        byte[] buffer, int offset, int count, AsyncCallback? asyncCallback, object? asyncState) =>
        TaskToAsyncResult.Begin(WriteAsync(buffer, offset, count, CancellationToken.None), asyncCallback, asyncState);

    /// <inheritdoc/>
    public override void EndWrite(IAsyncResult asyncResult)
    {
        if (_session is null)
        {
            base.EndWrite(asyncResult);
        }
        else
        {
            TaskToAsyncResult.End(asyncResult);
        }
    }

    /// <summary>Does nothing on a connection that OpenSSL shook hands on: writes are not buffered.</summary>
    public override void Flush()
    {
        // SslStream does not mind being flushed after it was disposed, as a StreamWriter around it may do.
        if (_session is null)
        {
            base.Flush();
        }
    }

    /// <summary>Does nothing on a connection that OpenSSL shook hands on: writes are not buffered.</summary>
    /// <param name="cancellationToken">Cancels the flush.</param>
    public override Task FlushAsync(CancellationToken cancellationToken)
    {
        if (_session is null)
        {
            return base.FlushAsync(cancellationToken);
        }

        return cancellationToken.IsCancellationRequested ? Task.FromCanceled(cancellationToken) : Task.CompletedTask;
    }

    /// <summary>
    /// Sends close_notify (RFC 8446, section 6.1) after all data. Nothing can be written afterwards; reading goes on until
    /// the peer has sent its own.
    /// </summary>
    /// <exception cref="InvalidOperationException">There was no successful handshake, or close_notify was sent before.</exception>
    /// <exception cref="IOException">The transport failed.</exception>
    public override Task ShutdownAsync()
    {
        if (Alive is { } session)
        {
            return session.Sender.ShutdownAsync();
        }

        ThrowIfFileInTheWay();
        return base.ShutdownAsync();
    }

    /// <summary>
    /// Asks the client for its certificate after the handshake: by post-handshake authentication (RFC 8446, section 4.6.2),
    /// which kernel TLS does not disturb. The certificate is judged as in the handshake. Not while a read or write is pending.
    /// </summary>
    /// <param name="cancellationToken">Ends the negotiation; the stream is of no use afterwards.</param>
    /// <exception cref="InvalidOperationException">
    /// There is a certificate already; the client did not offer to be asked; or it sent data first, which has to be read before
    /// negotiating again.
    /// </exception>
    /// <exception cref="AuthenticationException">The certificate was refused, or none was given.</exception>
    /// <exception cref="NotSupportedException">
    /// Below TLS 1.3 on a connection that OpenSSL shook hands on: that would take a renegotiation, which kernel TLS does not have.
    /// </exception>
    public override Task NegotiateClientCertificateAsync(CancellationToken cancellationToken = default) =>
        Alive is { } session
            ? session.RequestCertificateAsync(this, cancellationToken)
#pragma warning disable CA1416 // The base class says itself where this is not supported.
            : base.NegotiateClientCertificateAsync(cancellationToken);
#pragma warning restore CA1416

    /// <summary>
    /// Changes the key that this end sends with (RFC 8446, section 4.6.3), after the write in progress: every later byte is
    /// under the new key. Thread-safe: may be called while reads and writes are pending.
    /// </summary>
    /// <param name="requestPeerUpdate">Asks the peer to change its own key in return; that is done when it says so, in a read.</param>
    /// <param name="cancellationToken">Cancels the wait for its turn and for room in the send buffer: nothing was sent then.</param>
    /// <exception cref="InvalidOperationException">There was no successful handshake, or close_notify was sent.</exception>
    /// <exception cref="KtlsRekeyException">
    /// Not TLS 1.3, or the kernel holds a key that must change and this kernel (before Linux 6.14) or OpenSSL (before 3.2)
    /// cannot. Nothing was sent and the connection goes on.
    /// </exception>
    /// <exception cref="NotSupportedException">The base class shook hands: SslStream has no key updates.</exception>
    /// <exception cref="IOException">
    /// The transport failed; or half of a handshake message of the peer's has been read, in which case nothing was sent, and the
    /// update is possible once a read has taken the rest.
    /// </exception>
    public ValueTask UpdateKeysAsync(bool requestPeerUpdate, CancellationToken cancellationToken = default)
    {
        if (Alive is { } session)
        {
            return session.Sender.UpdateKeysAsync(requestPeerUpdate, cancellationToken);
        }

        ThrowIfHandshakeFailed();
        KtlsOffload offload = Offload; // throws where there was no successful handshake
        throw new NotSupportedException($"SslStream shook hands on this connection ({offload}) and has no key updates.");
    }

    /// <summary>Segments laid side by side, so that they fill the base class's records.</summary>
    private async ValueTask WriteManagedAsync(ReadOnlySequence<byte> data, CancellationToken cancellationToken)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(RecordBudget.RecordSize);
        try
        {
            while (!data.IsEmpty)
            {
                int length = (int)Math.Min(data.Length, RecordBudget.RecordSize);
                data.Slice(0, length).CopyTo(buffer);
                await base.WriteAsync(buffer.AsMemory(0, length), cancellationToken).ConfigureAwait(false);
                data = data.Slice(length);
            }
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }

    private void ThrowIfHandshakeFailed() => _handshakeFailure?.Throw();
}
