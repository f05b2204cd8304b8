using System.Security.Authentication;
using KernelTls.Diagnostics;
using KernelTls.Tests;
using Microsoft.AspNetCore.Hosting;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests that a server uses the kernel as requested, or has the platform's reason. On a lab machine without the module
/// that reason is known: eng/test runs these tests there as well.
/// </summary>
[Trait("cell", "no-tls-module")]
public class ModuleMissingTests
{
    [Fact]
    public async Task Preferred_works_and_says_once_why_it_is_not_the_kernel()
    {
        await using Server server = await Server.StartAsync(TlsMode.Kernel);
        using HttpClient client = Server.CreateClient("2.0");

        await Offloads.AssertAsync(
            KtlsPlatform.Probe().IsSupported
                ? Offloads.Expected(TlsMode.Kernel, SslProtocols.Tls13)
                : Offloads.Managed(KtlsPlatform.Probe().NotSupportedReason),
            client,
            server.Https);
        using HttpClient plain = Server.CreateClient();
        await Offloads.AssertAsync("stock", plain, server.Http);

        Server.Log.Entry entry = Assert.Single(
            server.Events.Entries,
            e => e.Category.StartsWith("KernelTls", StringComparison.Ordinal) && e.Level >= LogLevel.Information);
        Assert.Equal(KtlsPlatform.Probe().IsSupported ? LogLevel.Information : LogLevel.Warning, entry.Level);
        Assert.Contains(
            KtlsPlatform.Probe().IsSupported ? " uses kernel TLS." : $" uses the default SslStream-based TLS: {KtlsPlatform.Probe().NotSupportedReason}. {Advice.On(KtlsPlatform.Probe().NotSupportedReason)}",
            entry.Message,
            StringComparison.Ordinal);
    }

    [Fact]
    public async Task With_a_fallback_to_OpenSSL_it_is_the_kernel_or_OpenSSL_on_the_socket()
    {
        await using Server server = await Server.StartAsync(
            TlsMode.Kernel,
            builder: builder => builder.WebHost.UseKernelTls(options => options.Fallback = KtlsFallback.OpenSsl));
        using HttpClient client = Server.CreateClient("2.0");

        KtlsFallbackReason reason = KtlsPlatform.Probe().NotSupportedReason;
        await Offloads.AssertAsync(
            KtlsPlatform.Probe().IsSupported
                ? Offloads.Expected(TlsMode.Kernel, SslProtocols.Tls13)
                : $"send=openssl ({reason}) receive=openssl ({reason})",
            client,
            server.Https);

        Server.Log.Entry entry = Assert.Single(
            server.Events.Entries,
            e => e.Category.StartsWith("KernelTls", StringComparison.Ordinal) && e.Level >= LogLevel.Information);
        Assert.Equal(LogLevel.Information, entry.Level);
        Assert.Contains(
            KtlsPlatform.Probe().IsSupported ? " uses kernel TLS." : $" uses OpenSSL on the socket, without kernel TLS: {reason}. {Advice.On(reason)}",
            entry.Message,
            StringComparison.Ordinal);
    }

    [Fact]
    public async Task Required_works_or_stops_the_start()
    {
        Task<Server> starting = Server.StartAsync(
            TlsMode.Stock,
            https => https.SslProtocols = SslProtocols.Tls12,
            builder: builder => builder.WebHost.UseKernelTls(options => options.Mode = KtlsMode.Required));
        if (!KtlsPlatform.Probe().IsSupported)
        {
            KtlsNotAvailableException e = await Assert.ThrowsAsync<KtlsNotAvailableException>(() => starting.InTime());
            Assert.Equal(KtlsPlatform.Probe().NotSupportedReason, e.Reason);
            return;
        }

        await using Server server = await starting.InTime();
        using HttpClient client = Server.CreateClient("2.0");
        Assert.Equal(
            Offloads.Expected(TlsMode.Kernel, SslProtocols.Tls12),
            await client.GetStringAsync(new Uri(server.Https, "/offload")).InTime());
    }
}
