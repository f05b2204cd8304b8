using System.Buffers;
using System.Security.Authentication;
using KernelTls.Interop;
using KernelTls.IO;

namespace KernelTls;

// The Stream members. If the base class performed the handshake, it also reads and writes.
public partial class KtlsStream
{
    /// <inheritdoc/>
    /// <remarks>
    /// An end of the connection without close_notify is the end of the stream: 0, with <see cref="EndedWithoutCloseNotify"/>. With
    /// <see cref="KtlsOptions.RequireCloseNotify"/> it is an <see cref="IOException"/>. The same holds for all methods that read.
    /// </remarks>
    public override int Read(byte[] buffer, int offset, int count)
    {
        ValidateBufferArguments(buffer, offset, count);
        return Read(buffer.AsSpan(offset, count));
    }

    /// <inheritdoc/>
    public override int Read(Span<byte> buffer)
    {
        if (SessionOrNull is not { } session)
        {
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
        if (SessionOrNull is { } session)
        {
            return session.Receiver.ReceiveAsync(buffer, cancellationToken);
        }

        return base.ReadAsync(buffer, cancellationToken);
    }

    /// <inheritdoc/>
    public override IAsyncResult BeginRead(
        byte[] buffer, int offset, int count, AsyncCallback? asyncCallback, object? asyncState) =>
        TaskToAsyncResult.Begin(ReadAsync(buffer, offset, count, CancellationToken.None), asyncCallback, asyncState);

    /// <inheritdoc/>
    public override int EndRead(IAsyncResult asyncResult) =>
        SessionOrNull is null ? base.EndRead(asyncResult) : TaskToAsyncResult.End<int>(asyncResult);

    /// <inheritdoc/>
    public override void Write(byte[] buffer, int offset, int count)
    {
        ValidateBufferArguments(buffer, offset, count);
        Write(buffer.AsSpan(offset, count));
    }

    /// <inheritdoc/>
    public override void Write(ReadOnlySpan<byte> buffer)
    {
        if (SessionOrNull is not { } session)
        {
            ThrowIfFileBlocksWrites();
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
        if (SessionOrNull is { } session)
        {
            return session.Sender.SendAsync(buffer, cancellationToken);
        }

        ThrowIfFileBlocksWrites();
        return base.WriteAsync(buffer, cancellationToken);
    }

    /// <summary>Writes the segments of a sequence as one write.</summary>
    /// <remarks>
    /// With kernel TLS one system call writes up to 64 segments, so that small segments share full records (RFC 8446,
    /// section 5.1). Thread-safety and exceptions are those of
    /// <see cref="WriteAsync(ReadOnlyMemory{byte}, CancellationToken)"/>. If a write in progress is canceled, nothing
    /// can be written after it.
    /// </remarks>
    /// <param name="buffers">The bytes to write. Do not change them before the write completes.</param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    /// <returns>A task that represents the write.</returns>
    public ValueTask WriteAsync(ReadOnlySequence<byte> buffers, CancellationToken cancellationToken = default)
    {
        if (SessionOrNull is { } session)
        {
            return session.Sender.SendAsync(buffers, cancellationToken);
        }

        ThrowIfFileBlocksWrites();
        return buffers.IsSingleSegment
            ? base.WriteAsync(buffers.First, cancellationToken)
            : WriteCoalescedAsync(buffers, cancellationToken);
    }

    /// <inheritdoc/>
    public override IAsyncResult BeginWrite(
        byte[] buffer, int offset, int count, AsyncCallback? asyncCallback, object? asyncState) =>
        TaskToAsyncResult.Begin(WriteAsync(buffer, offset, count, CancellationToken.None), asyncCallback, asyncState);

    /// <inheritdoc/>
    public override void EndWrite(IAsyncResult asyncResult)
    {
        if (SessionOrNull is null)
        {
            base.EndWrite(asyncResult);
        }
        else
        {
            TaskToAsyncResult.End(asyncResult);
        }
    }

    /// <summary>
    /// Flushes the base class. Does nothing if OpenSSL performed the handshake, because writes are not buffered.
    /// </summary>
    public override void Flush()
    {
        // Like SslStream, allows a flush after Dispose: a StreamWriter around the stream may call it.
        if (_session is null)
        {
            base.Flush();
        }
    }

    /// <inheritdoc cref="Flush"/>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    /// <returns>A task that represents the flush.</returns>
    public override Task FlushAsync(CancellationToken cancellationToken)
    {
        if (_session is null)
        {
            return base.FlushAsync(cancellationToken);
        }

        return cancellationToken.IsCancellationRequested ? Task.FromCanceled(cancellationToken) : Task.CompletedTask;
    }

    /// <summary>
    /// Sends close_notify (RFC 8446, section 6.1) after all data. Nothing can be written afterwards. Data can be read
    /// until the peer sends its own close_notify.
    /// </summary>
    /// <returns>A task that represents the operation.</returns>
    /// <exception cref="InvalidOperationException">
    /// No handshake has succeeded, or close_notify was already sent.
    /// </exception>
    /// <exception cref="IOException">The transport failed.</exception>
    public override Task ShutdownAsync()
    {
        if (SessionOrNull is { } session)
        {
            return session.Sender.ShutdownAsync();
        }

        ThrowIfFileBlocksWrites();
        return base.ShutdownAsync();
    }

    /// <summary>
    /// Requests the client's certificate after the handshake, by post-handshake authentication (RFC 8446, section
    /// 4.6.2).
    /// </summary>
    /// <remarks>
    /// Kernel TLS remains in use. The certificate is validated as in the handshake. No read or write may be pending. If
    /// the operation is canceled, the stream cannot be used any more.
    /// </remarks>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    /// <returns>A task that represents the operation.</returns>
    /// <exception cref="InvalidOperationException">
    /// The client has already sent a certificate, the client did not offer post-handshake authentication, or the client
    /// sent more than 16 KiB of data before its certificate, which must be read before the negotiation.
    /// </exception>
    /// <exception cref="AuthenticationException">The certificate was refused, or the client sent none.</exception>
    /// <exception cref="NotSupportedException">
    /// OpenSSL performed the handshake and the version is below TLS 1.3. The request would need a renegotiation, which
    /// kernel TLS does not support.
    /// </exception>
    public override Task NegotiateClientCertificateAsync(CancellationToken cancellationToken = default) =>
        SessionOrNull is { } session
            ? session.RequestCertificateAsync(this, cancellationToken)
#pragma warning disable CA1416 // The base class throws on platforms that do not support this.
            : base.NegotiateClientCertificateAsync(cancellationToken);
#pragma warning restore CA1416

    /// <summary>
    /// Changes the key of the sending direction (RFC 8446, section 4.6.3) after the write in progress. All later data
    /// is encrypted under the new key. Thread-safe: may be called while reads and writes are pending.
    /// </summary>
    /// <remarks>
    /// Cancellation ends the wait for the write in progress and for space in the send buffer. Nothing was sent in that
    /// case.
    /// </remarks>
    /// <param name="requestPeerUpdate">
    /// <see langword="true"/> to request that the peer change its key as well. A later read receives the peer's update.
    /// </param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    /// <returns>A task that represents the operation.</returns>
    /// <exception cref="InvalidOperationException">
    /// No handshake has succeeded, or close_notify was already sent.
    /// </exception>
    /// <exception cref="KtlsRekeyException">
    /// The version is not TLS 1.3, or the kernel holds a key and cannot change it, which takes Linux 6.14, or a kernel with the backport
    /// (RHEL 10), and OpenSSL 3.2. Nothing was sent, and the connection can still be used.
    /// </exception>
    /// <exception cref="NotSupportedException">
    /// The base class performed the handshake. SslStream does not support key updates.
    /// </exception>
    /// <exception cref="IOException">
    /// The transport failed; or only a part of a handshake message from the peer has been read. In the latter case
    /// nothing was sent, and the update is possible once a read has received the rest.
    /// </exception>
    public ValueTask UpdateSendKeyAsync(bool requestPeerUpdate, CancellationToken cancellationToken = default)
    {
        if (SessionOrNull is { } session)
        {
            return session.Sender.UpdateSendKeyAsync(requestPeerUpdate, cancellationToken);
        }

        KtlsOffload offload = Offload; // throws if no handshake has succeeded
        throw new NotSupportedException($"SslStream performed the handshake of this connection ({offload}) and does not support key updates.");
    }

    /// <summary>Writes several segments through the base class, which makes at least one record of each write.</summary>
    private async ValueTask WriteCoalescedAsync(ReadOnlySequence<byte> data, CancellationToken cancellationToken)
    {
        SegmentCoalescer segments = new(data);
        try
        {
            while (segments.NextLength is > 0 and int length)
            {
                await base.WriteAsync(segments.Next(length), cancellationToken).ConfigureAwait(false);
            }
        }
        finally
        {
            segments.Dispose();
        }
    }

    /// <summary>
    /// Throws if this end refused the peer: the failure of the handshake, or that the stream is disposed. After any other
    /// failed handshake the base class reports that the stream is not authenticated.
    /// </summary>
    private void ThrowIfPeerRefused()
    {
        if (_peerRefused && !RuntimeBehavior.ForgetsRefusal)
        {
            ObjectDisposedException.ThrowIf(_disposed, this);
            _handshakeFailure?.Throw();
        }
    }
}
