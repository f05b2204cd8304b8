using System.ComponentModel;
using System.Net.Security;
using System.Net.Sockets;

namespace KernelTls.Weaving;

/// <summary>
/// Replaces <see cref="SslStream"/> as a base class in code that KernelTls.Weave has rewritten. Not for use by hand.
/// </summary>
/// <typeparam name="TAssembly">A class of the woven assembly, which names it in events.</typeparam>
[EditorBrowsable(EditorBrowsableState.Never)]
public class WovenSslStream<TAssembly> : KtlsStream
    where TAssembly : class
{
    /// <inheritdoc cref="SslStream(Stream)"/>
    public WovenSslStream(Stream innerStream)
        : this(innerStream, leaveInnerStreamOpen: false)
    {
    }

    /// <inheritdoc cref="SslStream(Stream, bool)"/>
    public WovenSslStream(Stream innerStream, bool leaveInnerStreamOpen)
        : this(innerStream, leaveInnerStreamOpen, null)
    {
    }

    /// <inheritdoc cref="SslStream(Stream, bool, RemoteCertificateValidationCallback)"/>
    public WovenSslStream(
        Stream innerStream, bool leaveInnerStreamOpen, RemoteCertificateValidationCallback? userCertificateValidationCallback)
        : this(innerStream, leaveInnerStreamOpen, userCertificateValidationCallback, null)
    {
    }

    /// <inheritdoc cref="SslStream(Stream, bool, RemoteCertificateValidationCallback, LocalCertificateSelectionCallback)"/>
    public WovenSslStream(
        Stream innerStream,
        bool leaveInnerStreamOpen,
        RemoteCertificateValidationCallback? userCertificateValidationCallback,
        LocalCertificateSelectionCallback? userCertificateSelectionCallback)
        : this(
            innerStream,
            leaveInnerStreamOpen,
            userCertificateValidationCallback,
            userCertificateSelectionCallback,
            EncryptionPolicy.RequireEncryption)
    {
    }

    /// <inheritdoc cref="SslStream(Stream, bool, RemoteCertificateValidationCallback, LocalCertificateSelectionCallback, EncryptionPolicy)"/>
    public WovenSslStream(
        Stream innerStream,
        bool leaveInnerStreamOpen,
        RemoteCertificateValidationCallback? userCertificateValidationCallback,
        LocalCertificateSelectionCallback? userCertificateSelectionCallback,
        EncryptionPolicy encryptionPolicy)
        : base(
            innerStream,
            leaveInnerStreamOpen,
            userCertificateValidationCallback,
            userCertificateSelectionCallback,
            encryptionPolicy,
            WovenConstructors<TAssembly>.Library.Options)
    {
    }

    /// <inheritdoc/>
    public override ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default) =>
        IsPastWrapper && InnerStream.ReadTimeout is > 0 and int timeout
            ? ReadInTimeAsync(buffer, timeout, cancellationToken)
            : base.ReadAsync(buffer, cancellationToken);

    /// <inheritdoc/>
    public override ValueTask WriteAsync(ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default) =>
        IsPastWrapper && InnerStream.WriteTimeout is > 0 and int timeout
            ? WriteInTimeAsync(buffer, timeout, cancellationToken)
            : base.WriteAsync(buffer, cancellationToken);

    /// <summary>
    /// Gets a value that indicates whether reads and writes bypass a wrapper. The known wrappers also limit the time of asynchronous
    /// ones and then disconnect, which sockets do not.
    /// </summary>
    private bool IsPastWrapper => IsOnSocket && InnerStream is not NetworkStream && InnerStream.CanTimeout;

    private async ValueTask<int> ReadInTimeAsync(Memory<byte> buffer, int timeout, CancellationToken cancellationToken)
    {
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        limit.CancelAfter(timeout);
        try
        {
            return await base.ReadAsync(buffer, limit.Token).ConfigureAwait(false);
        }
        catch (OperationCanceledException e)
        {
            throw await DisconnectAsync(e, cancellationToken).ConfigureAwait(false);
        }
    }

    private async ValueTask WriteInTimeAsync(ReadOnlyMemory<byte> buffer, int timeout, CancellationToken cancellationToken)
    {
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        limit.CancelAfter(timeout);
        try
        {
            await base.WriteAsync(buffer, limit.Token).ConfigureAwait(false);
        }
        catch (OperationCanceledException e)
        {
            throw await DisconnectAsync(e, cancellationToken).ConfigureAwait(false);
        }
    }

    /// <summary>Disconnects, and returns what SslStream throws when the stream under it has cancelled an operation.</summary>
    private async ValueTask<Exception> DisconnectAsync(OperationCanceledException canceled, CancellationToken cancellationToken)
    {
        await InnerStream.DisposeAsync().ConfigureAwait(false);
        return cancellationToken.IsCancellationRequested
            ? new OperationCanceledException(canceled.Message, cancellationToken)
            : new IOException(
                "The operation took longer than the timeout of the stream allows.", new TimeoutException(canceled.Message, canceled));
    }
}
