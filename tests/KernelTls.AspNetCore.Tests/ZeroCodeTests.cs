using System.Diagnostics;
using KernelTls.Offload;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>An application of its own that only references the package: KernelTls.ZeroCodeApp.</summary>
public class ZeroCodeTests
{
    [Fact]
    public async Task Without_the_toggle_nothing_is_registered()
    {
        string[] without = await ServicesAsync(("ASPNETCORE_PREVENTHOSTINGSTARTUP", "true"));
        string[] unset = await ServicesAsync();
        string[] off = await ServicesAsync((Applications.KernelVariable, "0"));
        string[] on = await ServicesAsync((Applications.KernelVariable, "1"));

        Assert.Contains(without, s => s.Contains("IConnectionListenerFactory", StringComparison.Ordinal));
        Assert.Equal(without, unset);
        Assert.Equal(without, off);
        Assert.Contains(on.Except(without), s => s.Contains("DeferredListenerFactory", StringComparison.Ordinal));
        Assert.Contains(on.Except(without), s => s.Contains("KtlsHandlerFilter", StringComparison.Ordinal));
        Assert.Empty(without.Except(on));
    }

    [Theory]
    [InlineData(null, "stock")]
    [InlineData(Applications.DirectVariable, "send=openssl (DirectOpenSsl) receive=openssl (DirectOpenSsl)")]
    public async Task The_toggle_alone_switches(string? variable, string expected)
    {
        Assert.Equal((expected, expected), await OffloadsAsync(variable is null ? [] : [(variable, "1")]));
    }

    [Fact]
    public async Task The_kernel_s_toggle_alone_switches()
    {
        string expected = KtlsPlatform.IsSupported
            ? Offloads.Expected(TlsMode.Kernel, System.Security.Authentication.SslProtocols.Tls13)
            : "stock";
        Assert.True(KtlsPlatform.IsSupported || !Cell.KtlsExpected);
        Assert.Equal((expected, expected), await OffloadsAsync((Applications.KernelVariable, "1")));
    }

    [Theory]
    [InlineData("Unset", false, false)]
    [InlineData("Off", false, false)]
    [InlineData("On", false, true)]
    [InlineData("Invalid", false, true)]
    [InlineData("Unset", true, true)]
    [InlineData("Off", true, true)]
    public void What_the_environment_asks_for(string kernel, bool direct, bool asked) =>
        Assert.Equal(asked, KernelTlsHostingStartup.IsAsked(Enum.Parse<Toggle>(kernel), direct));

    private static async Task<string[]> ServicesAsync(params (string Name, string Value)[] environment)
    {
        using Process process = Start(environment, "--services");
        string output = await process.StandardOutput.ReadToEndAsync().InTime("the list of services");
        await process.WaitForExitAsync().InTime("the application to end");
        Assert.Equal(0, process.ExitCode);
        return [.. output.Split('\n', StringSplitOptions.RemoveEmptyEntries).Order(StringComparer.Ordinal)];
    }

    private static async Task<(string Server, string Client)> OffloadsAsync(params (string Name, string Value)[] environment)
    {
        using TemporaryDirectory directory = new();
        (string certificate, string key) = Certificates.WritePem(Certificates.Ecdsa, directory.FullName);
        using Process process = Start(
            environment,
            "--Kestrel:Endpoints:Secure:Url=https://127.0.0.1:0",
            $"--Kestrel:Endpoints:Secure:Certificate:Path={certificate}",
            $"--Kestrel:Endpoints:Secure:Certificate:KeyPath={key}");
        try
        {
            string address = (await process.StandardOutput.ReadLineAsync().InTime("the application to listen"))!;
            using HttpClient client = Server.CreateClient("2.0");
            string ofServer = await client.GetStringAsync(new Uri(address)).InTime();
            string ofClient = await client.GetStringAsync(new Uri(new Uri(address), "/client")).InTime();
            process.StandardInput.Close();
            await process.WaitForExitAsync().InTime("the application to end");
            Assert.Equal(0, process.ExitCode);
            return (ofServer, ofClient);
        }
        finally
        {
            process.Kill();
        }
    }

    private static Process Start((string Name, string Value)[] environment, params string[] arguments) =>
        Applications.Start("KernelTls.ZeroCodeApp", environment, arguments);
}
