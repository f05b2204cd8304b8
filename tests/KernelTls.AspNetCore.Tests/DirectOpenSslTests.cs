using KernelTls.Tests;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests that OpenSSL on the socket without the kernel is not called kernel TLS.</summary>
public class DirectOpenSslTests
{
    [Fact]
    public async Task The_log_says_that_the_kernel_has_no_part_in_it()
    {
        await using Server server = await Server.StartAsync(TlsMode.DirectOpenSsl);

        Server.Log.Entry entry = Assert.Single(
            server.Events.Entries,
            e => e.Category.StartsWith("KernelTls", StringComparison.Ordinal) && e.Level >= LogLevel.Information);
        Assert.Contains(" uses OpenSSL on the socket, without kernel TLS: DisabledByMode. ", entry.Message, StringComparison.Ordinal);
    }
}
