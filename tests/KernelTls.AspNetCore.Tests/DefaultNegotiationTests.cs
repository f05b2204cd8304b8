using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests that an https endpoint without settings for cipher suites accepts the same as the stock Kestrel on the same
/// machine.
/// </summary>
public class DefaultNegotiationTests
{
    public static TheoryData<TlsMode, string> Keys => Modes.With("ECDSA P-256", "RSA 2048");

    [Theory]
    [MemberData(nameof(Keys))]
    public async Task An_endpoint_accepts_the_suites_that_the_stock_one_accepts(TlsMode mode, string key)
    {
        string[] accepted = await SideBySide.RunAsync(mode, async each =>
        {
            await using Server server = await Server.StartAsync(each, https => https.ServerCertificate = Certificates.Kind(key));
            return await HelloProbe.AcceptedAsync(async offered =>
            {
                using Socket socket = await server.ConnectSocketAsync();
                return await HelloProbe.OfferAsync(socket, offered);
            });
        });
        Assert.Contains(nameof(TlsCipherSuite.TLS_AES_128_GCM_SHA256), accepted);
        Assert.DoesNotContain(accepted, s => s.StartsWith("TLS_RSA_", StringComparison.Ordinal));
    }
}
