namespace KernelTls;

/// <summary>How a <see cref="KtlsStream"/> uses kernel TLS. Read when a handshake starts; not thread-safe while being changed.</summary>
public sealed class KtlsOptions
{
    private KtlsMode _mode = KtlsMode.Environment;
    private long? _recordLimit;

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
    /// A network device that encrypts reads the pages of a file sent by <see cref="KtlsStream.SendFileAsync"/> where they are,
    /// instead of a copy (TLS_TX_ZEROCOPY_RO, Documentation/networking/tls.rst). It changes nothing where the kernel itself
    /// encrypts. Default: <see langword="false"/>.
    /// </summary>
    /// <remarks>
    /// Dangerous where files change: after a retransmission a page is encrypted again under the same nonce. If it has changed
    /// since, the peer finds the record forged and ends the connection, and who sees both versions on the wire learns about
    /// their contents. Only for files that nobody writes to or truncates until the peer has acknowledged them, which is later
    /// than SendFileAsync completes. A kernel before Linux 5.19 refuses it: an event (OptionRefused) says so, and the
    /// connection goes on without.
    /// </remarks>
    public bool ZeroCopySendFile { get; set; }
}
