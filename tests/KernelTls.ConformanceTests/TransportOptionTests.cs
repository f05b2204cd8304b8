using KernelTls.Interop;
using KernelTls.IO;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests the options that are set on the socket: if it refuses one, an event reports that.</summary>
public class TransportOptionTests
{
    [Fact]
    public async Task A_kernel_that_knows_no_such_option_is_an_event()
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        List<string> refused = Refusals.Collect();
        ConnectionInfo info = new() { KtlsReceive = 1, ProtocolVersion = 0x0304 };

        SocketOptions.ApplyToKernel(sockets.Client, isServer: false, new KtlsOptions { ExpectNoPadding = KtlsExpectNoPadding.Never }, info);
        Assert.Empty(refused);
        SocketOptions.ApplyToKernel(sockets.Client, isServer: false, new KtlsOptions { ExpectNoPadding = KtlsExpectNoPadding.Always }, info);

        Assert.StartsWith("TLS_RX_EXPECT_NO_PAD ", Assert.Single(refused), StringComparison.Ordinal);
    }
}
