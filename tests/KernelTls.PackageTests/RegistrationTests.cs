using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests what the package registers in a web application that only references it, by the toggles, without a kernel.
/// </summary>
[Trait("loop", "outer")]
public class RegistrationTests(Workshop workshop)
{
    [Fact]
    public async Task Without_the_toggle_nothing_is_registered()
    {
        string[] without = await ServicesAsync(("ASPNETCORE_PREVENTHOSTINGSTARTUP", "true"));
        string[] unset = await ServicesAsync();
        string[] off = await ServicesAsync((Application.KernelVariable, "0"));
        string[] on = await ServicesAsync((Application.KernelVariable, "1"));

        Assert.Contains(without, s => s.Contains("IConnectionListenerFactory", StringComparison.Ordinal));
        Assert.Equal(without, unset);
        Assert.Equal(without, off);
        Assert.Single(on.Except(without), s => s.Contains("DeferredListenerFactory", StringComparison.Ordinal));
        Assert.Single(on.Except(without), s => s.Contains("KtlsHandlerFilter", StringComparison.Ordinal));
        Assert.Empty(without.Except(on));
    }

    [Theory]
    [InlineData(null, "stock")]
    [InlineData(Application.DirectVariable, "send=openssl (NotEnabled) receive=openssl (NotEnabled)")]
    public async Task A_toggle_alone_switches_server_and_clients(string? variable, string expected)
    {
        using WebServer server = await WebServer.StartAsync(await ClientsAsync(), variable is null ? [] : [(variable, "1")]);

        Assert.Equal(expected, await server.GetAsync("/", "2.0"));
        Assert.Equal(expected, await server.GetAsync("/client", "2.0"));
    }

    private async Task<string> ClientsAsync() =>
        Path.Combine(await workshop.PublishAsync(ConsumerApp.Clients, "clients"), "clients.dll");

    private async Task<string[]> ServicesAsync(params (string, string)[] environment)
    {
        using Application application = Programs.Start(await ClientsAsync(), environment, "--services");
        string[] services = (await application.SucceedAsync()).Split('\n', StringSplitOptions.RemoveEmptyEntries);
        return [.. services.Order(StringComparer.Ordinal)];
    }
}
