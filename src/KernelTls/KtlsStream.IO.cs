using System.Security.Authentication;

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
    public override int EndRead(IAsyncResult asyncResult) => TaskToAsyncResult.End<int>(asyncResult);

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
        return base.WriteAsync(buffer, cancellationToken);
    }

    /// <inheritdoc/>
    public override IAsyncResult BeginWrite(
        byte[] buffer, int offset, int count, AsyncCallback? asyncCallback, object? asyncState) =>
        TaskToAsyncResult.Begin(WriteAsync(buffer, offset, count, CancellationToken.None), asyncCallback, asyncState);

    /// <inheritdoc/>
    public override void EndWrite(IAsyncResult asyncResult) => TaskToAsyncResult.End(asyncResult);

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
    public override Task ShutdownAsync() => Alive is { } session ? session.Sender.ShutdownAsync() : base.ShutdownAsync();

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

    private void ThrowIfHandshakeFailed() => _handshakeFailure?.Throw();
}
