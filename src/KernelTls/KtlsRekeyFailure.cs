namespace KernelTls;

/// <summary>Why the keys of a connection could not be changed, or were changed too often.</summary>
public enum KtlsRekeyFailure
{
    /// <summary>
    /// The kernel holds the keys, and this kernel (before Linux 6.14) or this OpenSSL (before 3.2) cannot change them there;
    /// or the connection is not TLS 1.3.
    /// </summary>
    NotSupported = 1,

    /// <summary>
    /// As many records were sent as one key is good for (<see cref="KtlsOptions.RecordLimit"/>), and the key could not be
    /// changed. close_notify was sent; reading goes on.
    /// </summary>
    RecordLimit = 2,

    /// <summary>The peer sent control records at a rate that serves no purpose but to keep this end busy.</summary>
    Flood = 3,
}
