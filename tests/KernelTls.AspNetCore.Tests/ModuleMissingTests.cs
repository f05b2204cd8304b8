using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Hosting;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// What is asked of a kernel is had, or the platform's reason is the server's. On a machine of the lab without the module that
/// reason is certain: eng/test runs these there as well.
/// </summary>
public class ModuleMissingTests
{
    [Fact]
    public async Task Preferred_works_and_says_once_why_it_is_not_the_kernel()
    {
        await using Server server = await Server.StartAsync(TlsMode.Kernel);
        using HttpClient client = Server.CreateClient("2.0");

        await Offloads.AssertInAsync(KtlsPlatform.IsSupported ? TlsMode.Kernel : TlsMode.Stock, client, server.Https);

        Server.Log.Entry entry = Assert.Single(
            server.Events.Entries,
            e => e.Category.StartsWith("KernelTls", StringComparison.Ordinal) && e.Level >= LogLevel.Information);
        Assert.Equal(KtlsPlatform.IsSupported ? LogLevel.Information : LogLevel.Warning, entry.Level);
        Assert.Contains(
            KtlsPlatform.IsSupported ? " is served by kernel TLS." : $"({KtlsPlatform.NotSupportedReason})",
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
        if (!KtlsPlatform.IsSupported)
        {
            KtlsNotAvailableException e = await Assert.ThrowsAsync<KtlsNotAvailableException>(() => starting.InTime());
            Assert.Equal(KtlsPlatform.NotSupportedReason, e.Reason);
            return;
        }

        await using Server server = await starting.InTime();
        using HttpClient client = Server.CreateClient("2.0");
        Assert.Equal(
            Offloads.Expected(TlsMode.Kernel, SslProtocols.Tls12),
            await client.GetStringAsync(new Uri(server.Https, "/offload")).InTime());
    }
}
