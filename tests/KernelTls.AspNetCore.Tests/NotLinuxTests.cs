using KernelTls.Diagnostics;
using KernelTls.Tests;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests a web server on a system that is not Linux: its endpoints keep Kestrel's own TLS, and one line says why.</summary>
public class NotLinuxTests
{
    [Fact]
    public Task A_server_keeps_its_own_TLS_and_the_native_library_is_not_asked_for() =>
        OwnProcess.RunAsync(typeof(NotLinuxTests), nameof(Elsewhere));

    [Fact(Explicit = true)]
    public async Task Elsewhere()
    {
        IReadOnlyCollection<string> asked = OtherSystem.Begin();
        await using Server server = await Server.StartAsync(TlsMode.DirectOpenSsl);
        using HttpClient client = Server.CreateClient("2.0");

        await Offloads.AssertAsync(Offloads.Managed(KtlsFallbackReason.NotLinux), client, server.Https);

        Server.Log.Entry entry = Assert.Single(
            server.Events.Entries, e => e.Category.StartsWith("KernelTls", StringComparison.Ordinal) && e.Level >= LogLevel.Information);
        Assert.EndsWith(
            $" uses the default SslStream-based TLS: NotLinux. {Advice.On(KtlsFallbackReason.NotLinux)}", entry.Message, StringComparison.Ordinal);
        Assert.Empty(asked);
    }
}
