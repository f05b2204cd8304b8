namespace KernelTls.Diagnostics;

/// <summary>Why this end changed its sending key.</summary>
internal enum KeyUpdateCause
{
    Application,
    Peer,

    /// <summary>The key had sent as many records as <see cref="KtlsOptions.RecordLimit"/> allows.</summary>
    RecordLimit,
}
