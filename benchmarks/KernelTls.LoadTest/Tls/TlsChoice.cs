using System.Net.Security;
using System.Reflection;
using Microsoft.Extensions.Configuration;

namespace KernelTls.LoadTest.Tls;

/// <summary>
/// Selects the TLS implementation. Only environment variables affect this choice. By default, it selects the stock
/// classes without any code of this library in between. Otherwise, it selects the classes of this library with the
/// options of <c>KtlsOptions__NAME</c>.
/// </summary>
internal sealed class TlsChoice
{
    public const string KernelVariable = "DOTNET_SYSTEM_NET_SECURITY_KTLS";
    public const string DirectVariable = "DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL";
    public const string OptionsPrefix = "KtlsOptions__";

    private readonly IConfigurationRoot _configuration = new ConfigurationBuilder().AddEnvironmentVariables(OptionsPrefix).Build();

    /// <exception cref="LoadTestFailedException">
    /// The name of a variable is not an option, or its value is not valid for that option.
    /// </exception>
    public TlsChoice()
    {
        bool toggled = new[] { KernelVariable, DirectVariable }.Any(v => !string.IsNullOrEmpty(Environment.GetEnvironmentVariable(v)));
        IsStock = !toggled && !_configuration.GetChildren().Any();
        Configure(Options);
        if (!IsStock)
        {
            // The library probes the kernel here, with sockets that the kernel counts. This must not happen during a
            // measurement.
            _ = KtlsPlatform.Probe();
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
            throw new LoadTestFailedException($"the environment has a wrong option: {given}", e.GetBaseException());
        }
    }

    public SslStream CreateStream(Stream transport) =>
        IsStock ? new SslStream(transport) : new KtlsStream(transport, leaveInnerStreamOpen: false, Options);
}
