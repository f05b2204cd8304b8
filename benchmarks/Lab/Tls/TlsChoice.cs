using System.Net.Security;
using System.Reflection;
using Microsoft.Extensions.Configuration;

namespace KernelTls.Lab.Tls;

/// <summary>
/// What the environment says about TLS, and nothing else does: where it says nothing, the stock classes, with no code of this
/// library between; else the library's, with the options of <c>KtlsOptions__NAME</c>.
/// </summary>
internal sealed class TlsChoice
{
    public const string KernelVariable = "DOTNET_SYSTEM_NET_SECURITY_KTLS";
    public const string DirectVariable = "DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL";
    public const string OptionsPrefix = "KtlsOptions__";

    private readonly IConfigurationRoot _configuration = new ConfigurationBuilder().AddEnvironmentVariables(OptionsPrefix).Build();

    /// <exception cref="LabFailedException">A variable names no option, or no value of it.</exception>
    public TlsChoice()
    {
        bool toggled = new[] { KernelVariable, DirectVariable }.Any(v => !string.IsNullOrEmpty(Environment.GetEnvironmentVariable(v)));
        IsStock = !toggled && !_configuration.GetChildren().Any();
        Configure(Options);
        if (!IsStock)
        {
            // Here the library tries the kernel out, with sockets that the kernel counts: not while anything is measured.
            _ = KtlsPlatform.IsSupported;
        }
    }

    public bool IsStock { get; }

    public KtlsOptions Options { get; } = new();

    public void Configure(KtlsOptions options)
    {
        options.Mode = KtlsMode.Environment;
        try
        {
            _configuration.Bind(options, binder => binder.ErrorOnUnknownConfiguration = true);
        }
        catch (Exception e) when (e is InvalidOperationException or TargetInvocationException or ArgumentException)
        {
            string given = string.Join(' ', _configuration.GetChildren().Select(c => $"{OptionsPrefix}{c.Key}={c.Value}"));
            throw new LabFailedException($"the environment has a wrong option: {given}", e.GetBaseException());
        }
    }

    public SslStream CreateStream(Stream transport) =>
        IsStock ? new SslStream(transport) : new KtlsStream(transport, leaveInnerStreamOpen: false, Options);
}
