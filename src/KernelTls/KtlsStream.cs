using System.Diagnostics.CodeAnalysis;
using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Handshake;
using KernelTls.IO;
using KernelTls.Offload;

namespace KernelTls;

/// <summary>
/// An <see cref="SslStream"/> that lets the Linux kernel encrypt and decrypt, where that is possible and asked for, and is a
/// plain <see cref="SslStream"/> everywhere else.
/// </summary>
/// <remarks>
/// <para>
/// Over a connected TCP <see cref="System.Net.Sockets.NetworkStream"/>, OpenSSL shakes hands on the socket itself and gives
/// the keys to the kernel (Documentation/networking/tls.rst); data then moves by plain socket calls between the caller's
/// memory and the kernel. Over any other stream, or where something is missing, the base class does everything; no option is
/// ignored. <see cref="Offload"/> says which it was, and why.
/// </para>
/// <para>
/// Thread-safety is that of <see cref="SslStream"/>: one read and one write at a time, which may overlap each other; a second
/// of the same kind throws <see cref="NotSupportedException"/>. Dispose may be called at any time from any thread.
/// </para>
/// <para>
/// Two things differ from <see cref="SslStream"/> on purpose. A connection that the peer closes without the close_notify alert
/// (RFC 8446, section 6.1) ends in an <see cref="IOException"/>, not in an end of stream, because data may be missing
/// (<see cref="KtlsOptions.AllowTruncation"/> makes it one). And disposing sends close_notify, waiting for room in the send
/// buffer for at most three seconds.
/// </para>
/// </remarks>
public partial class KtlsStream : SslStream
{
    private readonly KtlsOptions _options;
    private readonly Socket? _namedSocket;
    private readonly StreamCallbacks _callbacks;
    private readonly EncryptionPolicy _encryptionPolicy;
    private TlsSession? _session;
    private KtlsFallbackReason _managedReason = KtlsFallbackReason.BaseHandshake;
    private volatile bool _disposed;

    /// <summary>Creates a stream over <paramref name="innerStream"/>, which is closed with it.</summary>
    /// <param name="innerStream">
    /// The transport; a <see cref="System.Net.Sockets.NetworkStream"/> on a connected TCP socket can be offloaded.
    /// </param>
    /// <exception cref="ArgumentNullException"><paramref name="innerStream"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="innerStream"/> is not readable or not writable.</exception>
    public KtlsStream(Stream innerStream)
        : this(innerStream, leaveInnerStreamOpen: false)
    {
    }

    /// <inheritdoc cref="KtlsStream(Stream, bool, RemoteCertificateValidationCallback, LocalCertificateSelectionCallback, EncryptionPolicy, KtlsOptions)"/>
    public KtlsStream(Stream innerStream, bool leaveInnerStreamOpen)
        : this(innerStream, leaveInnerStreamOpen, null, null, EncryptionPolicy.RequireEncryption, null)
    {
    }

    /// <inheritdoc cref="KtlsStream(Stream, bool, RemoteCertificateValidationCallback, LocalCertificateSelectionCallback, EncryptionPolicy, KtlsOptions)"/>
    public KtlsStream(
        Stream innerStream,
        bool leaveInnerStreamOpen,
        RemoteCertificateValidationCallback? userCertificateValidationCallback)
        : this(innerStream, leaveInnerStreamOpen, userCertificateValidationCallback, null, EncryptionPolicy.RequireEncryption, null)
    {
    }

    /// <inheritdoc cref="KtlsStream(Stream, bool, RemoteCertificateValidationCallback, LocalCertificateSelectionCallback, EncryptionPolicy, KtlsOptions)"/>
    public KtlsStream(
        Stream innerStream,
        bool leaveInnerStreamOpen,
        RemoteCertificateValidationCallback? userCertificateValidationCallback,
        LocalCertificateSelectionCallback? userCertificateSelectionCallback)
        : this(
            innerStream,
            leaveInnerStreamOpen,
            userCertificateValidationCallback,
            userCertificateSelectionCallback,
            EncryptionPolicy.RequireEncryption,
            null)
    {
    }

    /// <inheritdoc cref="KtlsStream(Stream, bool, RemoteCertificateValidationCallback, LocalCertificateSelectionCallback, EncryptionPolicy, KtlsOptions)"/>
    public KtlsStream(
        Stream innerStream,
        bool leaveInnerStreamOpen,
        RemoteCertificateValidationCallback? userCertificateValidationCallback,
        LocalCertificateSelectionCallback? userCertificateSelectionCallback,
        EncryptionPolicy encryptionPolicy)
        : this(
            innerStream,
            leaveInnerStreamOpen,
            userCertificateValidationCallback,
            userCertificateSelectionCallback,
            encryptionPolicy,
            null)
    {
    }

    /// <inheritdoc cref="KtlsStream(Stream, bool, RemoteCertificateValidationCallback, LocalCertificateSelectionCallback, EncryptionPolicy, KtlsOptions)"/>
    public KtlsStream(Stream innerStream, bool leaveInnerStreamOpen, KtlsOptions? options)
        : this(innerStream, leaveInnerStreamOpen, null, null, EncryptionPolicy.RequireEncryption, options)
    {
    }

    /// <summary>Creates a stream over <paramref name="innerStream"/>.</summary>
    /// <param name="innerStream">
    /// The transport; a <see cref="System.Net.Sockets.NetworkStream"/> on a connected TCP socket can be offloaded.
    /// </param>
    /// <param name="leaveInnerStreamOpen">Disposing this stream leaves <paramref name="innerStream"/> open.</param>
    /// <param name="userCertificateValidationCallback">Judges the peer's certificate; <see langword="null"/>: any policy error refuses it.</param>
    /// <param name="userCertificateSelectionCallback">Chooses the own certificate.</param>
    /// <param name="encryptionPolicy">Only <see cref="EncryptionPolicy.RequireEncryption"/> is offloaded.</param>
    /// <param name="options">How kernel TLS is used; <see langword="null"/>: as the environment says.</param>
    /// <exception cref="ArgumentNullException"><paramref name="innerStream"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="innerStream"/> is not readable or not writable.</exception>
    public KtlsStream(
        Stream innerStream,
        bool leaveInnerStreamOpen,
        RemoteCertificateValidationCallback? userCertificateValidationCallback,
        LocalCertificateSelectionCallback? userCertificateSelectionCallback,
        EncryptionPolicy encryptionPolicy,
        KtlsOptions? options)
        : base(
            innerStream,
            leaveInnerStreamOpen,
            userCertificateValidationCallback,
            userCertificateSelectionCallback,
            encryptionPolicy)
    {
        _options = options ?? new KtlsOptions();
        _callbacks = new StreamCallbacks(this, userCertificateValidationCallback, userCertificateSelectionCallback);
        _encryptionPolicy = encryptionPolicy;
    }

    /// <summary>
    /// Creates a stream over a wrapper around a socket's stream, and names the socket: OpenSSL and the kernel use the socket, and
    /// nothing goes through the wrapper, which is only disposed with this stream. Where the base class shakes hands, all goes
    /// through the wrapper.
    /// </summary>
    /// <remarks>
    /// At the caller's risk: what the wrapper counts, times, limits or changes no longer happens, and what it has read ahead is
    /// lost. It must hold no bytes when the handshake starts. Timeouts are the socket's.
    /// </remarks>
    /// <param name="innerStream">The wrapper. Without a named socket it would stay with the base class (<see cref="KtlsFallbackReason.NotASocket"/>).</param>
    /// <param name="socket">The connected TCP socket that the wrapper reads from and writes to.</param>
    /// <param name="leaveInnerStreamOpen">Disposing this stream leaves <paramref name="innerStream"/> open.</param>
    /// <param name="options">How kernel TLS is used; <see langword="null"/>: as the environment says.</param>
    /// <exception cref="ArgumentNullException"><paramref name="innerStream"/> or <paramref name="socket"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="innerStream"/> is not readable or not writable.</exception>
    public KtlsStream(Stream innerStream, Socket socket, bool leaveInnerStreamOpen, KtlsOptions? options)
        : this(innerStream, leaveInnerStreamOpen, options)
    {
        ArgumentNullException.ThrowIfNull(socket);
        _namedSocket = socket;
    }

    /// <summary>Who encrypts and decrypts on this connection and, where it is not the kernel, why.</summary>
    /// <exception cref="InvalidOperationException">The handshake has not ended well.</exception>
    public KtlsOffload Offload
    {
        get
        {
            if (_session is { } session)
            {
                return session.Offload;
            }

            return base.IsAuthenticated
                ? KtlsOffload.Managed(_managedReason)
                : throw new InvalidOperationException("Offload is known after a successful handshake: call AuthenticateAsClient or AuthenticateAsServer first.");
        }
    }

    /// <summary>
    /// Sends close_notify if it was not sent, waiting at most three seconds for room in the send buffer, and closes. After a
    /// handshake that this end has refused, waits at most one second until the peer has closed, so that the alert is not lost.
    /// </summary>
    /// <param name="disposing"><see langword="false"/> in the finalizer.</param>
    protected override void Dispose(bool disposing)
    {
        if (!disposing)
        {
            base.Dispose(disposing);
        }
        else if (TryBeginDispose())
        {
            // close_notify goes out first; closing the socket ends pending operations; the SSL* goes last.
            _session?.Close();
            if (_alertedSocket is { } socket && !LeaveInnerStreamOpen)
            {
                AlertDelivery.Complete(socket);
            }

            base.Dispose(disposing);
            _session?.Dispose();
        }
    }

    /// <summary>As Dispose, without blocking a thread.</summary>
    [SuppressMessage("Usage", "CA1816", Justification = "The base class suppresses finalization.")]
    public override async ValueTask DisposeAsync()
    {
        if (TryBeginDispose())
        {
            if (_session is { } session)
            {
                await session.CloseAsync().ConfigureAwait(false);
            }
            else if (_alertedSocket is { } socket && !LeaveInnerStreamOpen)
            {
                await AlertDelivery.CompleteAsync(socket).ConfigureAwait(false);
            }

            await base.DisposeAsync().ConfigureAwait(false);
            _session?.Dispose();
        }
    }

    private bool TryBeginDispose() => !Interlocked.Exchange(ref _disposed, true);
}
