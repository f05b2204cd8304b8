namespace KernelTls;

/// <summary>How a <see cref="KtlsStream"/> uses kernel TLS. Read when a handshake starts; not thread-safe while being changed.</summary>
public sealed class KtlsOptions
{
    private KtlsMode _mode = KtlsMode.Environment;
    private long? _recordLimit;
    private KtlsDirections _directions = KtlsDirections.Both;
    private TimeSpan? _busyPoll;

    /// <summary>Whether kernel TLS is used. Default: <see cref="KtlsMode.Environment"/>.</summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is not a <see cref="KtlsMode"/>.</exception>
    public KtlsMode Mode
    {
        get => _mode;
        set
        {
            if (!Enum.IsDefined(value))
            {
                throw new ArgumentOutOfRangeException(
                    nameof(value), value, "Expected Environment, Disabled, Preferred or Required.");
            }

            _mode = value;
        }
    }

    /// <summary>
    /// Binds OpenSSL to the socket but keeps the kernel out of it, as <c>DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL=1</c>
    /// does for the whole process. An experiment that isolates the cost of the socket BIO. Default: <see langword="false"/>.
    /// </summary>
    public bool DirectOpenSsl { get; set; }

    /// <summary>
    /// How many records are sent under one key before it is changed by a KeyUpdate (RFC 8446, sections 4.6.3 and 5.5); a
    /// record holds at most 16 KiB, and a write begins at least one. Where the key cannot be changed (TLS 1.2, or a kernel
    /// that holds it and is older than Linux 6.14, or OpenSSL older than 3.2) the sending half closes with close_notify and
    /// writes throw <see cref="KtlsRekeyException"/>. <see langword="null"/>, the default: for TLS 1.3 2^24 with AES-GCM, 2^22
    /// with AES-CCM, without limit otherwise. No effect where the base class shook hands.
    /// </summary>
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
    /// The directions that the kernel is asked for; OpenSSL keeps the other one, with
    /// <see cref="KtlsFallbackReason.DirectionNotAsked"/>. Default: <see cref="KtlsDirections.Both"/>.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">
    /// The value is not Send, Receive or Both. For neither there is <see cref="KtlsMode.Disabled"/>.
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
    /// The peer pads no records: the kernel decrypts TLS 1.3 straight into the receiver's memory
    /// (<c>TLS_RX_EXPECT_NO_PAD</c>: Documentation/networking/tls.rst). Default: <see langword="false"/>.
    /// </summary>
    /// <remarks>
    /// For trusted peers. A record that is padded all the same (RFC 8446, section 5.4) is decrypted twice, so that a hostile peer
    /// doubles the work for a byte of padding each. Kernels that garble such records, as Linux 6.12.107 does, are found out by
    /// trial and not asked.
    /// <c>TlsRxNoPadViolation</c> in <c>/proc/net/tls_stat</c> counts padded records, <c>TlsDecryptRetry</c> those and the
    /// control records, such as session tickets. Where it cannot be had
    /// (<see cref="KtlsPlatform.CanExpectNoPadding"/>) there is an event, and the connection goes on.
    /// </remarks>
    public bool ExpectNoPadding { get; set; }

    /// <summary>
    /// How long the kernel may poll the network device for this socket instead of sleeping (<c>SO_BUSY_POLL</c>, with
    /// <c>SO_PREFER_BUSY_POLL</c>), in whole microseconds. Zero: not at all, whatever <c>net.core.busy_read</c> says. <see langword="null"/>, the default,
    /// leaves the socket as it is.
    /// </summary>
    /// <remarks>
    /// Set where OpenSSL shakes hands. <c>SO_PREFER_BUSY_POLL</c>, and on older kernels raising <c>SO_BUSY_POLL</c>, needs
    /// <c>CAP_NET_ADMIN</c>; a refusal is an event, and the connection goes on. See docs/tuning.md for when it pays.
    /// </remarks>
    /// <exception cref="ArgumentOutOfRangeException">The value is negative or over <see cref="int.MaxValue"/> microseconds.</exception>
    public TimeSpan? BusyPoll
    {
        get => _busyPoll;
        set
        {
            if (value is { } time && (time < TimeSpan.Zero || time.TotalMicroseconds > int.MaxValue))
            {
                throw new ArgumentOutOfRangeException(nameof(value), value, "Expected 0 to 2147483647 microseconds.");
            }

            _busyPoll = value;
        }
    }

    /// <summary>
    /// A network device that encrypts reads the pages of a file sent by <see cref="KtlsStream.SendFileAsync"/> where they are,
    /// instead of a copy (TLS_TX_ZEROCOPY_RO, Documentation/networking/tls.rst). It changes nothing where the kernel itself
    /// encrypts. Default: <see langword="false"/>.
    /// </summary>
    /// <remarks>
    /// Dangerous where files change: after a retransmission a page is encrypted again under the same nonce. If it has changed
    /// since, the peer finds the record forged and ends the connection, and who sees both versions on the wire learns about
    /// their contents. Only for files that nobody writes to or truncates until the peer has acknowledged them, which is later
    /// than SendFileAsync completes. A kernel before Linux 5.19 refuses it: an event (SocketOptionRefused) says so,
    /// and the connection goes on without.
    /// </remarks>
    public bool ZeroCopySendFile { get; set; }

    /// <summary>
    /// Whether a connection that the peer closes without close_notify (RFC 8446, section 6.1) is an end of stream, as on
    /// <see cref="System.Net.Security.SslStream"/>, instead of an <see cref="IOException"/>. <see langword="null"/>, the default:
    /// no for a <see cref="KtlsStream"/>, yes for an HttpClient (<see cref="SocketsHttpHandlerKtlsExtensions.UseKernelTls"/>) and
    /// on Kestrel's endpoints.
    /// </summary>
    /// <remarks>
    /// Whoever can inject a FIN into the TCP connection can then cut the data short, and reading looks as if it had come to its
    /// end. Allow it only where the layer above knows by itself whether it has everything. An end inside a record and a reset
    /// are errors in any case. No effect where the base class shook hands: it allows truncation. docs/security.md says why
    /// HTTP has it.
    /// </remarks>
    public bool? AllowTruncation { get; set; }

    /// <summary>Returns a copy for a layer above that has framing of its own.</summary>
    internal KtlsOptions ForFramedProtocol()
    {
        KtlsOptions copy = (KtlsOptions)MemberwiseClone();
        copy.AllowTruncation ??= true;
        return copy;
    }
}
