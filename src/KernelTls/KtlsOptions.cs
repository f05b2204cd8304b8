namespace KernelTls;

/// <summary>Configures how a <see cref="KtlsStream"/> uses kernel TLS.</summary>
/// <remarks>The stream reads the options when a handshake starts. Changing them is not thread-safe.</remarks>
public sealed class KtlsOptions
{
    private KtlsMode _mode = KtlsMode.Environment;
    private KtlsExpectNoPadding _expectNoPadding = KtlsExpectNoPadding.Automatic;
    private KtlsFallback _fallback = KtlsFallback.Environment;
    private long? _recordLimit;
    private KtlsDirections _directions = KtlsDirections.Both;

    /// <summary>Gets or sets whether kernel TLS is used. The default is <see cref="KtlsMode.Environment"/>.</summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is not defined by <see cref="KtlsMode"/>.</exception>
    public KtlsMode Mode
    {
        get => _mode;
        set
        {
            if (value is < KtlsMode.Environment or > KtlsMode.Required)
            {
                throw new ArgumentOutOfRangeException(
                    nameof(value), value, "Expected Environment, Disabled, Preferred or Required.");
            }

            _mode = value;
        }
    }

    /// <summary>
    /// Gets or sets what processes the records where the kernel cannot. The default is <see cref="KtlsFallback.Environment"/>.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is not defined by <see cref="KtlsFallback"/>.</exception>
    public KtlsFallback Fallback
    {
        get => _fallback;
        set
        {
            if (value is < KtlsFallback.Environment or > KtlsFallback.OpenSsl)
            {
                throw new ArgumentOutOfRangeException(nameof(value), value, "Expected Environment, SslStream or OpenSsl.");
            }

            _fallback = value;
        }
    }

    /// <summary>
    /// Gets or sets the number of records that are sent under one key before a KeyUpdate changes it (RFC 8446, sections
    /// 4.6.3 and 5.5). The default, <see langword="null"/>, is 2^24 for AES-GCM and 2^22 for AES-CCM with TLS 1.3, and
    /// no limit otherwise.
    /// </summary>
    /// <remarks>
    /// A record holds at most 16 KiB, and every write begins a new record. If the key cannot be changed, the sending
    /// half closes with close_notify, and writes throw <see cref="KtlsRekeyException"/>. That is the case with TLS 1.2,
    /// and when the kernel holds the key and cannot change it, which takes Linux 6.14, or a kernel with the backport (RHEL 10), and OpenSSL 3.2.
    /// The limit has no effect if the base class performed the handshake.
    /// </remarks>
    /// <exception cref="ArgumentOutOfRangeException">The value is below 1.</exception>
    public long? RecordLimit
    {
        get => _recordLimit;
        set
        {
            if (value is { } limit)
            {
                ArgumentOutOfRangeException.ThrowIfLessThan(limit, 1, nameof(value));
            }

            _recordLimit = value;
        }
    }

    /// <summary>
    /// Gets or sets the directions for which kernel TLS is requested. The default is <see cref="KtlsDirections.Both"/>.
    /// </summary>
    /// <remarks>
    /// OpenSSL processes the other direction, with the reason <see cref="KtlsFallbackReason.DirectionNotRequested"/>.
    /// </remarks>
    /// <exception cref="ArgumentOutOfRangeException">
    /// The value is not Send, Receive or Both. To use neither, set <see cref="Mode"/> to
    /// <see cref="KtlsMode.Disabled"/>.
    /// </exception>
    public KtlsDirections Directions
    {
        get => _directions;
        set
        {
            if (value is not (KtlsDirections.Send or KtlsDirections.Receive or KtlsDirections.Both))
            {
                throw new ArgumentOutOfRangeException(nameof(value), value, "Expected Send, Receive or Both.");
            }

            _directions = value;
        }
    }

    /// <summary>
    /// Gets or sets whether the kernel expects the peer's TLS 1.3 records to have no padding, so that it decrypts directly into the
    /// receiver's memory. The default is <see cref="KtlsExpectNoPadding.Automatic"/>.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is not one of the enumeration.</exception>
    public KtlsExpectNoPadding ExpectNoPadding
    {
        get => _expectNoPadding;
        set
        {
            if (value is < KtlsExpectNoPadding.Automatic or > KtlsExpectNoPadding.Never)
            {
                throw new ArgumentOutOfRangeException(nameof(value), value, "Expected Automatic, Always or Never.");
            }

            _expectNoPadding = value;
        }
    }

    /// <summary>
    /// Gets or sets a value that indicates whether an encrypting network device reads the pages of a file sent by
    /// <see cref="KtlsStream.SendFileAsync"/> in place instead of a copy (TLS_TX_ZEROCOPY_RO,
    /// Documentation/networking/tls.rst). The default is <see langword="false"/>.
    /// </summary>
    /// <remarks>
    /// This option is dangerous for files that change. After a retransmission a page is encrypted again under the same
    /// nonce. If the page has changed, the peer rejects the record as forged and ends the connection, and an observer
    /// who captures both versions learns about their contents. Use it only for files that are not written to or
    /// truncated until the peer has acknowledged them, which is later than SendFileAsync completes. The option has no
    /// effect if the kernel itself encrypts. Kernels before Linux 5.19 refuse it: the event SocketOptionRefused is
    /// written, and the connection continues without it.
    /// </remarks>
    public bool ZeroCopySendFile { get; set; }

    /// <summary>
    /// Gets or sets a value that indicates whether an end of the connection without close_notify (RFC 8446, section 6.1) is an
    /// <see cref="IOException"/>. The default is <see langword="false"/>: it is the end of the stream, as on
    /// <see cref="System.Net.Security.SslStream"/>, and <see cref="KtlsStream.EndedWithoutCloseNotify"/> tells.
    /// </summary>
    /// <remarks>
    /// An attacker who can inject a FIN into the TCP connection can cut the data short. Set this option if the protocol above TLS does
    /// not detect missing data itself, and the peer is known to send close_notify: SslStream does not, unless its
    /// application calls ShutdownAsync. An end inside a record and a reset are always errors. The option has no effect if the base class
    /// performed the handshake. See docs/security.md.
    /// </remarks>
    public bool RequireCloseNotify { get; set; }

    /// <summary>
    /// Gets or sets a value that indicates whether the socket carries other data after TLS has ended: plain text, as after FTP's CCC
    /// command (RFC 4217, section 3), or another handshake. The default is <see langword="false"/>.
    /// </summary>
    /// <remarks>
    /// The kernel cannot remove TLS from a socket (Documentation/networking/tls.rst). If this option is set, kernel TLS is not used
    /// (<see cref="KtlsFallbackReason.SocketReused"/>). If it is not set and a stream with kernel TLS leaves its socket open, disposing the
    /// stream ends the directions that the kernel processes: its <see cref="System.Net.Sockets.NetworkStream"/> is no longer readable and
    /// writable, so no other TLS stream can be created over it, and the peer receives FIN after close_notify. What is sent on the socket
    /// itself is discarded, and the kernel reports no error.
    /// </remarks>
    public bool AllowSocketReuse { get; set; }

    /// <summary>Gets the assembly whose woven code made the stream, or empty.</summary>
    internal string Library { get; init; } = "";

    /// <summary>Returns a copy, which the application cannot change.</summary>
    internal KtlsOptions Copy() => (KtlsOptions)MemberwiseClone();
}
