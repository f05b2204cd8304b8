using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests web applications that only reference the package: published on the host, and started there and, by eng/test,
/// in the lab's cells, where the kernel's own counters are checked.
/// </summary>
[Trait("cell", "programs")]
[Trait("loop", "outer")]
public class ZeroCodeTests(Workshop workshop)
{
    [Fact]
    public async Task The_toggle_puts_the_connections_of_a_new_web_application_into_the_kernel()
    {
        bool kernel = KtlsPlatform.Probe().IsSupported;
        Assert.True(kernel || !Cell.KtlsExpected);
        using WebServer server = await WebServer.StartAsync(await WebAsync(), (Application.KernelVariable, "1"));
        KernelCount counted = new();

        Assert.Equal("Hello World!", await server.GetAsync("/", "1.1"));
        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));

        // It is built for .NET 10 and rolls forward to the runtime of these tests: eng/test runs them on .NET 11, too.
        Assert.True(server.Process.HasLoaded($"Microsoft.NETCore.App/{Environment.Version}/libcoreclr.so"));

        counted.AssertEnds(server.Connections, used: 2);
        Assert.Contains(
            kernel ? " uses kernel TLS." : $" uses the default SslStream-based TLS: {KtlsPlatform.Probe().NotSupportedReason}.",
            await server.Process.KillAsync(),
            StringComparison.Ordinal);
    }

    [Theory]
    [InlineData(null)]
    [InlineData("0")]
    public async Task Without_the_toggle_nothing_changes(string? toggle) =>
        await AssertStockAsync(await WebAsync(), toggle is null ? [] : [(Application.KernelVariable, toggle)]);

    [Fact]
    public async Task A_project_that_leaves_the_start_up_out_is_a_stock_application_whatever_the_toggle_says()
    {
        string published = await workshop.PublishAsync(ConsumerApp.Web, "web-without-start-up", "-p:KernelTlsHostingStartup=false");

        Assert.True(File.Exists(Path.Combine(published, "KernelTls.AspNetCore.dll")));
        await AssertStockAsync(Path.Combine(published, "web.dll"), (Application.KernelVariable, "1"));
    }

    [Fact]
    public async Task The_toggle_switches_server_and_clients()
    {
        Assert.True(KtlsPlatform.Probe().IsSupported || !Cell.KtlsExpected);
        string expected = !KtlsPlatform.Probe().IsSupported
            ? $"send=managed ({KtlsPlatform.Probe().NotSupportedReason}) receive=managed ({KtlsPlatform.Probe().NotSupportedReason})"
            : KernelCount.ReceivesTls13 ? "send=kernel receive=kernel"
            : "send=kernel receive=openssl (OpenSslTooOld)";
        string clients = Path.Combine(await workshop.PublishAsync(ConsumerApp.Clients, "clients"), "clients.dll");
        using WebServer server = await WebServer.StartAsync(clients, (Application.KernelVariable, "1"));

        Assert.Equal(expected, await server.GetAsync("/", "2.0"));
        Assert.Equal(KtlsPlatform.Probe().IsSupported ? expected : "stock", await server.GetAsync("/client", "2.0"));
        Assert.DoesNotContain("stock SslStream", await server.Process.KillAsync(), StringComparison.Ordinal);
    }

    /// <summary>Alone the variable means OpenSSL on the socket, and beside the toggle the kernel if it can.</summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task The_variable_for_OpenSSL_switches_server_and_clients(bool andToggle)
    {
        string program = Path.Combine(await workshop.PublishAsync(ConsumerApp.Clients, "clients"), "clients.dll");
        KtlsFallbackReason reason = andToggle ? KtlsPlatform.Probe().NotSupportedReason : KtlsFallbackReason.NotEnabled;
        string expected = reason != KtlsFallbackReason.None ? $"send=openssl ({reason}) receive=openssl ({reason})"
            : KernelCount.ReceivesTls13 ? "send=kernel receive=kernel"
            : "send=kernel receive=openssl (OpenSslTooOld)";
        (string, string)[] toggle = andToggle ? [(Application.KernelVariable, "1")] : [];
        using WebServer server = await WebServer.StartAsync(program, [(Application.DirectVariable, "1"), .. toggle]);

        Assert.Equal(expected, await server.GetAsync("/", "1.1"));
        Assert.Equal(expected, await server.GetAsync("/", "2.0"));
        Assert.Equal(expected, await server.GetAsync("/client", "2.0"));
        Assert.True(server.Process.HasLoaded($"Microsoft.NETCore.App/{Environment.Version}/libcoreclr.so"));
        string said = await server.Process.KillAsync();
        Assert.Equal(reason != KtlsFallbackReason.None, said.Contains("OpenSSL on the socket", StringComparison.Ordinal));
    }

    [Fact]
    public async Task A_client_that_the_toggle_does_not_reach_is_logged_once()
    {
        string clients = Path.Combine(await workshop.PublishAsync(ConsumerApp.Clients, "clients"), "clients.dll");
        using WebServer server = await WebServer.StartAsync(clients, (Application.KernelVariable, "1"));

        _ = await server.GetAsync("/plain", "2.0");
        _ = await server.GetAsync("/plain", "2.0");

        // Without kernel TLS the log reports only that.
        string[] reports = [.. (await server.Process.KillAsync()).Split('\n').Where(l => l.Contains("stock SslStream", StringComparison.Ordinal))];
        Assert.Equal(KtlsPlatform.Probe().IsSupported ? 1 : 0, reports.Length);
        Assert.All(reports, r => Assert.Contains("System.Net.Http (System.Net.Http.ConnectHelper) uses a stock SslStream for a connection to 127.0.0.1", r, StringComparison.Ordinal));
        Assert.All(reports, r => Assert.Contains("UseKernelTls", r, StringComparison.Ordinal));
    }

    private static async Task AssertStockAsync(string program, params (string, string)[] environment)
    {
        _ = KtlsPlatform.Probe().IsSupported;
        using WebServer server = await WebServer.StartAsync(program, environment);
        KernelCount kernel = new();

        Assert.Equal("Hello World!", await server.GetAsync("/", "1.1"));
        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));

        kernel.AssertEnds(made: 0, used: 0);
        Assert.False(server.Process.HasLoaded(Repository.Shim));
        Assert.DoesNotContain("KernelTls", await server.Process.KillAsync(), StringComparison.Ordinal);
    }

    private async Task<string> WebAsync() => Path.Combine(await workshop.PublishAsync(ConsumerApp.Web, "web"), "web.dll");
}
