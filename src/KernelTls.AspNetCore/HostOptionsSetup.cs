using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.Options;

namespace KernelTls.AspNetCore;

/// <summary>
/// Sets the options of all of Kestrel's connections: first the mode that <c>UseKernelTls</c> stands for, then the section KernelTls of the
/// configuration. The delegate of <c>UseKernelTls</c> follows.
/// </summary>
internal sealed class HostOptionsSetup(IConfiguration configuration, IEnumerable<HostOptionsSetup.ByCode> calls) : IConfigureNamedOptions<KtlsOptions>
{
    public void Configure(string? name, KtlsOptions options)
    {
        if (name == KernelTlsServer.OptionsName)
        {
            options.Mode = calls.Any() ? KtlsMode.Preferred : options.Mode;
            KtlsConfiguration.BindHost(options, configuration);
        }
    }

    public void Configure(KtlsOptions options) => Configure(Options.DefaultName, options);

    /// <summary>Represents a call of <c>UseKernelTls</c> on the web host's builder.</summary>
    internal sealed class ByCode;
}
