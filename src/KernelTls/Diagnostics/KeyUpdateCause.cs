namespace KernelTls.Diagnostics;

/// <summary>Specifies why this end changed its sending key.</summary>
internal enum KeyUpdateCause
{
    Application,
    Peer,

    /// <summary>The key had encrypted as many records as <see cref="KtlsOptions.RecordLimit"/> permits.</summary>
    RecordLimit,
}
