namespace KernelTls.Offload;

/// <summary>Who shakes hands.</summary>
internal enum Engine
{
    /// <summary>The base class.</summary>
    Managed,

    /// <summary>OpenSSL on the socket, kernel TLS not asked for.</summary>
    DirectOpenSsl,

    /// <summary>OpenSSL on the socket, kernel TLS asked for at each key change.</summary>
    Kernel,
}

/// <summary>What the application and the operator ask for, before platform, socket and options are looked at.</summary>
internal static class EngineChoice
{
    /// <summary>Reason is None unless the engine is <see cref="Engine.Managed"/>.</summary>
    public static (Engine Engine, KtlsFallbackReason Reason) Decide(
        KtlsMode mode, bool directOption, Toggle toggle, bool directVariable)
    {
        KtlsFallbackReason kernelRefused = WhyNotKernel(mode, toggle);

        // The operator's variables win over what the code asks for: KTLS=0 switches everything off that code switched on,
        // DIRECT_OPENSSL=1 is an experiment only while kernel TLS is not on.
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

    private static KtlsFallbackReason WhyNotKernel(KtlsMode mode, Toggle toggle) => (mode, toggle) switch
    {
        (KtlsMode.Disabled, _) => KtlsFallbackReason.DisabledByMode,
        (_, Toggle.Off) => KtlsFallbackReason.DisabledByToggle,
        (KtlsMode.Environment, Toggle.Unset) => KtlsFallbackReason.NotEnabled,
        (KtlsMode.Environment, Toggle.Invalid) => KtlsFallbackReason.ToggleInvalid,
        _ => KtlsFallbackReason.None,
    };
}
