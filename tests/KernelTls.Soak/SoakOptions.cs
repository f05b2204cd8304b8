namespace KernelTls.Soak;

/// <summary>Contains the options of a run.</summary>
/// <param name="Duration">The time for which the clients run.</param>
/// <param name="Cores">The maximum number of processors that the process uses on average.</param>
/// <param name="Mode">The component that encrypts.</param>
/// <param name="Seed">The seed of the clients' choices.</param>
/// <param name="Fault">The intended fault.</param>
internal sealed record SoakOptions(TimeSpan Duration, double Cores, SoakMode Mode, int Seed, Fault Fault)
{
    /// <summary>Returns the options of a stream in this mode.</summary>
    public KtlsOptions CreateStreamOptions() => Mode switch
    {
        SoakMode.Kernel => new KtlsOptions { Mode = KtlsMode.Required },
        SoakMode.OpenSsl => new KtlsOptions { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl },
        _ => new KtlsOptions { Mode = KtlsMode.Disabled },
    };
}
