using KernelTls.Diagnostics;

namespace KernelTls.Offload;

/// <summary>Specifies the component that performs the handshake.</summary>
internal enum Engine
{
    /// <summary>The base class.</summary>
    Managed,

    /// <summary>OpenSSL on the socket, without a request for kernel TLS.</summary>
    DirectOpenSsl,

    /// <summary>OpenSSL on the socket, with a request for kernel TLS at each key change.</summary>
    Kernel,
}

/// <summary>Contains the engine of a handshake, and why it is not a better one.</summary>
/// <param name="KernelReason">None for <see cref="Engine.Kernel"/>; otherwise the reason why it is another engine.</param>
/// <param name="OpenSslReason">The reason why OpenSSL does not use the socket, or None if it does or may.</param>
internal readonly record struct EngineChoice(KtlsFallbackReason KernelReason, KtlsFallbackReason OpenSslReason)
{
    public Engine Engine => KernelReason == KtlsFallbackReason.None ? Engine.Kernel
        : OpenSslReason == KtlsFallbackReason.None ? Engine.DirectOpenSsl
        : Engine.Managed;

    /// <summary>
    /// Gets the reason to report why the base class performs the handshake, or None if it does not. If only OpenSSL on the socket was
    /// requested, it is the reason why that is not possible.
    /// </summary>
    public KtlsFallbackReason Reason => Engine != Engine.Managed ? KtlsFallbackReason.None
        : KtlsEventSource.IsChoice(KernelReason) && !KtlsEventSource.IsChoice(OpenSslReason) ? OpenSslReason
        : KernelReason;

    /// <summary>Gets what the platform lacks, or the setting that is wrong, if that is the reason; otherwise an empty string.</summary>
    public string Detail => Platform.DetailOf(Reason);

    /// <summary>
    /// Returns what the application and the operator request, before platform, socket and options are checked.
    /// </summary>
    public static EngineChoice Requested(KtlsMode mode, KtlsFallback fallback, Toggle kernel, Toggle directOpenSsl)
    {
        KtlsFallbackReason kernelReason = (mode, kernel, directOpenSsl) switch
        {
            (KtlsMode.Disabled, _, _) => KtlsFallbackReason.DisabledByMode,
            (_, Toggle.Off, _) => KtlsFallbackReason.DisabledByToggle,
            (KtlsMode.Environment, Toggle.Invalid, _) or (KtlsMode.Environment, Toggle.Unset, Toggle.Invalid) => KtlsFallbackReason.ToggleInvalid,
            (KtlsMode.Environment, Toggle.Unset, _) => KtlsFallbackReason.NotEnabled,
            _ => KtlsFallbackReason.None,
        };
        return new EngineChoice(kernelReason, OpenSslReasonOf(mode, fallback, kernel, directOpenSsl, kernelReason));
    }

    /// <summary>Returns the choice where kernel TLS or OpenSSL on the socket is not possible for these reasons, or None.</summary>
    public EngineChoice Where(KtlsFallbackReason kernelReason, KtlsFallbackReason openSslReason) => new(
        KernelReason == KtlsFallbackReason.None ? kernelReason : KernelReason,
        OpenSslReason == KtlsFallbackReason.None ? openSslReason : OpenSslReason);

    /// <summary>
    /// Appends to a message why OpenSSL does not use the socket, if it was requested and the reason is another one than <see cref="Reason"/>.
    /// </summary>
    public string AppendTo(string detail) =>
        OpenSslReason == Reason || KtlsEventSource.IsChoice(OpenSslReason)
            ? detail
            : $"{detail} OpenSSL does not use the socket either: {OpenSslReason}.".TrimStart();

    private static KtlsFallbackReason OpenSslReasonOf(
        KtlsMode mode, KtlsFallback fallback, Toggle kernel, Toggle directOpenSsl, KtlsFallbackReason kernelReason)
    {
        switch (kernelReason)
        {
            case KtlsFallbackReason.DisabledByToggle or KtlsFallbackReason.ToggleInvalid:
                return kernelReason;

            // The operator alone switches on what the application leaves to the environment.
            case KtlsFallbackReason.NotEnabled when directOpenSsl != Toggle.On:
                return kernelReason;

            case KtlsFallbackReason.DisabledByMode when fallback != KtlsFallback.OpenSsl:
                return kernelReason;

            // The kill switch also covers OpenSSL on the socket alone.
            case KtlsFallbackReason.DisabledByMode when kernel == Toggle.Off:
                return KtlsFallbackReason.DisabledByToggle;
        }

        return (mode, fallback, directOpenSsl) switch
        {
            (KtlsMode.Required, _, _) or (_, KtlsFallback.SslStream, _) => KtlsFallbackReason.DisabledByMode,
            (_, KtlsFallback.OpenSsl, _) or (_, _, Toggle.On) => KtlsFallbackReason.None,
            (_, _, Toggle.Off) => KtlsFallbackReason.DisabledByToggle,
            (_, _, Toggle.Invalid) => KtlsFallbackReason.ToggleInvalid,
            _ => KtlsFallbackReason.NotEnabled,
        };
    }
}
