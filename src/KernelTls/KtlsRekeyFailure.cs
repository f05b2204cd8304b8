namespace KernelTls;

/// <summary>Specifies why the keys of a connection could not be changed, or that they were changed too often.</summary>
public enum KtlsRekeyFailure
{
    /// <summary>
    /// The kernel holds the keys and cannot change them, which takes Linux 6.14, or a kernel with the backport (RHEL 10), and OpenSSL 3.2; or
    /// the connection does not use TLS 1.3.
    /// </summary>
    NotSupported = 1,

    /// <summary>
    /// The key has encrypted as many records as <see cref="KtlsOptions.RecordLimit"/> permits and could not be changed.
    /// close_notify was sent. The connection can still be read.
    /// </summary>
    RecordLimit = 2,

    /// <summary>The peer sent control records at a rate that has no purpose other than to keep this end busy.</summary>
    Flood = 3,

    /// <summary>
    /// The peer split a handshake message across several records, and one of them begins with the message type of a
    /// KeyUpdate (24).
    /// </summary>
    /// <remarks>
    /// A kernel that can change keys treats that record as a KeyUpdate, also in TLS 1.2, and delivers no more data without a new
    /// key. RFC 8446, section 5.1, allows such records. OpenSSL, SslStream and other common stacks send them only for messages of more than
    /// 16 KiB: large session tickets, and large certificates after the handshake.
    /// </remarks>
    FragmentedMessage = 4,
}
