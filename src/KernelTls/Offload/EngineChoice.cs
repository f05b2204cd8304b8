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

/// <summary>
/// Decides what the application and the operator request, before platform, socket and options are checked.
/// </summary>
internal static class EngineChoice
{
    /// <summary>
    /// Returns the requested engine. The reason is None unless the engine is <see cref="Engine.Managed"/>.
    /// </summary>
    public static (Engine Engine, KtlsFallbackReason Reason) Decide(
        KtlsMode mode, bool directOption, Toggle toggle, bool directVariable)
    {
        KtlsFallbackReason kernelRefused = GetKernelReason(mode, toggle);

        // The operator's variables override the code. KTLS=0 disables everything that code enabled. DIRECT_OPENSSL=1 is
        // an experiment that applies only while kernel TLS is off.
        bool direct = directVariable
            ? kernelRefused != KtlsFallbackReason.None
            : directOption && toggle != Toggle.Off;
        if (direct)
        {
            return (Engine.DirectOpenSsl, KtlsFallbackReason.None);
        }

        return kernelRefused == KtlsFallbackReason.None
            ? (Engine.Kernel, KtlsFallbackReason.None)
            : (Engine.Managed, kernelRefused);
    }

    private static KtlsFallbackReason GetKernelReason(KtlsMode mode, Toggle toggle) => (mode, toggle) switch
    {
        (KtlsMode.Disabled, _) => KtlsFallbackReason.DisabledByMode,
        (_, Toggle.Off) => KtlsFallbackReason.DisabledByToggle,
        (KtlsMode.Environment, Toggle.Unset) => KtlsFallbackReason.NotEnabled,
        (KtlsMode.Environment, Toggle.Invalid) => KtlsFallbackReason.ToggleInvalid,
        _ => KtlsFallbackReason.None,
    };
}
