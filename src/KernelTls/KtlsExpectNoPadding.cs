namespace KernelTls;

/// <summary>
/// Specifies whether the kernel expects the peer's TLS 1.3 records to have no padding (<c>TLS_RX_EXPECT_NO_PAD</c>,
/// Documentation/networking/tls.rst). It then decrypts into the reader's memory, instead of memory of its own from which it copies.
/// </summary>
/// <remarks>
/// A record that is padded nevertheless (RFC 8446, section 5.4) is decrypted twice, so a peer can double the work with one byte of padding
/// for each record. The data is correct in each case: kernels that corrupt such records, as Linux 6.12.107 does, are detected by
/// a trial, and are not asked (<see cref="KtlsPlatform.CanExpectNoPadding"/>).
/// </remarks>
public enum KtlsExpectNoPadding
{
    /// <summary>
    /// The kernel expects no padding while it sees little. It counts padded records of its network namespace (<c>TlsRxNoPadViolation</c> in
    /// <c>/proc/net/tls_stat</c>). If the process finds that the number has grown by more than 64, which it looks at once a second at most,
    /// its new connections expect padding for a minute, and the others as soon as they have received 64 times more. The event
    /// PaddedRecords is written then. If the counter cannot be read, padding is expected.
    /// </summary>
    Automatic = 0,

    /// <summary>
    /// The kernel expects none, whatever it sees. Use it for trusted peers only. If the option is not available, the event
    /// SocketOptionRefused is written, and the connection continues without it.
    /// </summary>
    Always = 1,

    /// <summary>The kernel expects padding.</summary>
    Never = 2,
}
