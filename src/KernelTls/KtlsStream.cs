using System.Diagnostics.CodeAnalysis;
using System.Net.Security;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using KernelTls.Handshake;
using KernelTls.Interop;
using KernelTls.IO;
using KernelTls.Offload;

namespace KernelTls;

/// <summary>
/// An <see cref="SslStream"/> that offloads encryption and decryption to the Linux kernel if that is possible and
/// enabled, and otherwise behaves as a plain <see cref="SslStream"/>.
/// </summary>
/// <remarks>
/// <para>
/// Over a connected TCP <see cref="System.Net.Sockets.NetworkStream"/>, OpenSSL performs the handshake on the socket
/// and installs the keys in the kernel (Documentation/networking/tls.rst). Data then moves between the caller's memory
/// and the kernel by plain socket calls. Over any other stream, or if a prerequisite is missing, the base class does
/// everything. No option is ignored. <see cref="Offload"/> reports the data path and the reason.
/// </para>
/// <para>
/// Thread-safety is that of <see cref="SslStream"/>: one read and one write may be pending at a time. A second
/// operation of the same kind throws <see cref="NotSupportedException"/>. Dispose may be called at any time from any
/// thread.
/// </para>
/// <para>
/// One behavior differs from <see cref="SslStream"/> on purpose: Dispose sends the close_notify alert (RFC 8446, section 6.1). If the
/// peer closes the connection without it, a read reports the end of the stream, as SslStream does, although data may be missing.
/// <see cref="EndedWithoutCloseNotify"/> tells, and with <see cref="KtlsOptions.RequireCloseNotify"/> the read throws an
/// <see cref="IOException"/>.
/// </para>
/// </remarks>
public partial class KtlsStream : SslStream
{
    private readonly KtlsOptions _options;
    private readonly Socket? _namedSocket;
    private readonly StreamCallbacks _callbacks;
    private readonly EncryptionPolicy _encryptionPolicy;
    private TlsSession? _session;
    private EngineChoice _managed = new(KtlsFallbackReason.AuthenticatedAsBase, KtlsFallbackReason.AuthenticatedAsBase);
    private volatile bool _disposed;

    /// <summary>
    /// Initializes a new instance of the <see cref="KtlsStream"/> class over <paramref name="innerStream"/>, which is
    /// closed together with it.
    /// </summary>
    /// <param name="innerStream">
    /// The transport. A <see cref="System.Net.Sockets.NetworkStream"/> over a connected TCP socket can be offloaded.
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

    /// <summary>
    /// Initializes a new instance of the <see cref="KtlsStream"/> class over <paramref name="innerStream"/>.
    /// </summary>
    /// <param name="innerStream">
    /// The transport. A <see cref="System.Net.Sockets.NetworkStream"/> over a connected TCP socket can be offloaded.
    /// </param>
    /// <param name="leaveInnerStreamOpen">
    /// <see langword="true"/> to leave <paramref name="innerStream"/> open when this stream is disposed.
    /// </param>
    /// <param name="userCertificateValidationCallback">
    /// The callback that validates the peer's certificate. If it is <see langword="null"/>, any policy error refuses
    /// the certificate.
    /// </param>
    /// <param name="userCertificateSelectionCallback">The callback that selects the local certificate.</param>
    /// <param name="encryptionPolicy">
    /// The encryption policy. Only <see cref="EncryptionPolicy.RequireEncryption"/> can be offloaded.
    /// </param>
    /// <param name="options">
    /// The kernel TLS options. If they are <see langword="null"/>, the environment decides.
    /// </param>
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
    /// Initializes a new instance of the <see cref="KtlsStream"/> class over a wrapper around a socket's stream, and
    /// names the socket.
    /// </summary>
    /// <remarks>
    /// <para>
    /// OpenSSL and the kernel use the socket. They bypass the wrapper, which is only disposed together with this
    /// stream. If the base class performs the handshake, all data passes through the wrapper.
    /// </para>
    /// <para>
    /// The caller is responsible for the bypass: whatever the wrapper counts, times, limits or changes no longer
    /// happens, and data that it has read ahead is lost. It must hold no data when the handshake starts. The timeouts
    /// are those of the socket.
    /// </para>
    /// </remarks>
    /// <param name="innerStream">
    /// The wrapper. Without the socket it would fall back to the base class
    /// (<see cref="KtlsFallbackReason.NotSocketStream"/>).
    /// </param>
    /// <param name="socket">The connected TCP socket that the wrapper reads from and writes to.</param>
    /// <param name="leaveInnerStreamOpen">
    /// <see langword="true"/> to leave <paramref name="innerStream"/> open when this stream is disposed.
    /// </param>
    /// <param name="options">
    /// The kernel TLS options. If they are <see langword="null"/>, the environment decides.
    /// </param>
    /// <exception cref="ArgumentNullException"><paramref name="innerStream"/> or <paramref name="socket"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="innerStream"/> is not readable or not writable.</exception>
    public KtlsStream(Stream innerStream, Socket socket, bool leaveInnerStreamOpen, KtlsOptions? options)
        : this(innerStream, leaveInnerStreamOpen, options)
    {
        ArgumentNullException.ThrowIfNull(socket);
        _namedSocket = socket;
    }

    /// <summary>Gets a value that indicates whether reads and writes go past the inner stream, to the socket.</summary>
    private protected bool IsOnSocket => _session is not null;

    /// <summary>
    /// Gets the data path of each direction of this connection and, if it is not the kernel, the reason.
    /// </summary>
    /// <exception cref="InvalidOperationException">No handshake has succeeded.</exception>
    public KtlsOffload Offload
    {
        get
        {
            if (_session is { } session)
            {
                return session.Offload;
            }

            return base.IsAuthenticated
                ? KtlsOffload.Managed(_managed)
                : throw new InvalidOperationException("Offload is not available before a handshake has succeeded. Call AuthenticateAsClient or AuthenticateAsServer first.");
        }
    }

    /// <summary>
    /// Gets a value that indicates whether a read has reported the end of the stream because the peer closed the connection without
    /// close_notify (RFC 8446, section 6.1): data may be missing. Thread-safe.
    /// </summary>
    /// <remarks>
    /// Always <see langword="false"/> if the base class performed the handshake, which does not tell the two ends apart, and with
    /// <see cref="KtlsOptions.RequireCloseNotify"/>.
    /// </remarks>
    public bool EndedWithoutCloseNotify => _session?.Receiver.EndedWithoutCloseNotify ?? false;

    /// <summary>Sends close_notify if it was not sent, and closes the stream. Waits for nothing that the peer does.</summary>
    /// <remarks>
    /// If the stream owns the socket, the peer receives all that was written, and then close_notify. What the send buffer has no space for
    /// is sent in the background while the peer acknowledges data. Without progress it waits for three seconds, or for a minute where kernel
    /// TLS sends, and is then discarded. The same happens if a stream with kernel TLS does not own the socket (<c>ownsSocket: false</c>,
    /// <c>leaveInnerStreamOpen: true</c>, a wrapper), and then sending is shut down. A NetworkStream can be used no more in the
    /// directions that the kernel processes, because the kernel cannot remove TLS (<see cref="KtlsOptions.AllowSocketReuse"/>). Without
    /// kernel TLS, such a stream discards close_notify at once if there is no space. If this end refused the handshake, the connection
    /// stays open in the background until the peer has closed it, for at most one second, so that the alert is not lost.
    /// </remarks>
    /// <param name="disposing"><see langword="false"/> if called by the finalizer.</param>
    protected override void Dispose(bool disposing)
    {
        if (!disposing)
        {
            try
            {
                _session?.CountClosed();
            }
            catch (Exception)
            {
                // A listener to the meter threw. An exception of a finalizer would end the process.
            }

            base.Dispose(disposing);
        }
        else if (TryBeginDispose())
        {
            // The order matters: send close_notify, close the socket to end pending operations, then free the SSL*.
            bool closesSocket = ClosesSocket;
            Linger(_session?.Close(closesSocket) ?? true, closesSocket);
            base.Dispose(disposing);
            _session?.Dispose();
        }
    }

    /// <inheritdoc cref="Dispose(bool)" path="/summary"/>
    /// <inheritdoc cref="Dispose(bool)" path="/remarks"/>
    /// <returns>A task that represents the operation.</returns>
    [SuppressMessage("Usage", "CA1816", Justification = "The base class suppresses finalization.")]
    public override async ValueTask DisposeAsync()
    {
        if (TryBeginDispose())
        {
            bool closesSocket = ClosesSocket;
            Linger(_session is not { } session || await session.CloseAsync(closesSocket).ConfigureAwait(false), closesSocket);
            await base.DisposeAsync().ConfigureAwait(false);
            _session?.Dispose();
        }
    }

    /// <summary>Makes Dispose and DisposeAsync leave the connection open until the peer ends it (<see cref="LingeringClose"/>).</summary>
    /// <param name="socket">The stream's socket.</param>
    internal void LingerOnDispose(Socket socket) => _lingeringSocket = socket;

    /// <summary>Sends an alert that is due, because the caller closes the socket before it disposes the stream.</summary>
    internal void SendAlert() => _session?.Receiver.SendAlert();

    /// <summary>Gets a value that indicates whether disposing this stream closes the socket of its session.</summary>
    private bool ClosesSocket => _session is { } session && !LeaveInnerStreamOpen && Owns(session.Socket);

    private bool TryBeginDispose() => !Interlocked.Exchange(ref _disposed, true);

    /// <summary>Hands the connection over if it must not end yet, and closes the socket in that case if the stream owns it.</summary>
    private void Linger(bool isCloseNotifyDone, bool closesSocket)
    {
        if (!closesSocket && _session is { } session && (session.SendsInKernel || session.ReceivesInKernel))
        {
            EndSocket(session, isCloseNotifyDone);
            return;
        }

        if (LeaveInnerStreamOpen)
        {
            return;
        }

        if (!isCloseNotifyDone && closesSocket)
        {
            _session!.LingerToClose();
        }
        else if (_lingeringSocket is { } socket)
        {
            LingeringClose.Begin(socket, Owns(socket));
        }
    }

    /// <summary>
    /// Ends what the kernel processes of a socket that the stream does not close. It cannot remove TLS, accepts further writes without an
    /// error, and waits for the rest of what it takes for a record.
    /// </summary>
    private void EndSocket(TlsSession session, bool isCloseNotifyDone)
    {
        if (InnerStream is NetworkStream transport)
        {
            SetWriteable(transport, transport.CanWrite && !session.SendsInKernel);
            SetReadable(transport, transport.CanRead && !session.ReceivesInKernel);
        }

        if (session.SendsInKernel)
        {
            session.EndSending(isCloseNotifyDone);
        }
    }

    /// <summary>Sets the protected property <see cref="NetworkStream.Writeable"/>.</summary>
    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_Writeable")]
    private static extern void SetWriteable(NetworkStream stream, bool value);

    /// <summary>Sets the protected property <see cref="NetworkStream.Readable"/>.</summary>
    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_Readable")]
    private static extern void SetReadable(NetworkStream stream, bool value);

    /// <summary>Returns whether this stream closes the socket, as far as that can be known.</summary>
    private bool Owns(Socket socket) =>
        InnerStream is NetworkStream stream
        && stream.GetType() == typeof(NetworkStream)
        && stream.Socket == socket
        && RuntimeInternals.OwnsSocket(stream);
}
