using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests that a handshake takes no more TCP segments than SslStream's, which sends each flight at once. A segment costs both
/// ends more than the record in it.
/// </summary>
public class HandshakeSegmentTests
{
    public static TheoryData<TlsMode, SslProtocols, string> All =>
        Modes.AllOnOpenSslWith("first connection", "second connection", "client certificate", "no resumption");

    [Theory]
    [MemberData(nameof(All))]
    public async Task No_end_sends_more_segments_than_SslStream(TlsMode mode, SslProtocols version, string kind)
    {
        (long Client, long Server) stock = await CountAsync(TlsMode.Stock, TlsMode.Stock, version, kind);

        AssertNoMore(stock, await CountAsync(TlsMode.Stock, mode, version, kind), "server");
        AssertNoMore(stock, await CountAsync(mode, TlsMode.Stock, version, kind), "client");
    }

    /// <summary>Asserts the segments of both ends. Fewer are those of a ticket that only SslStream sends.</summary>
    private static void AssertNoMore((long Client, long Server) stock, (long Client, long Server) actual, string end) =>
        Assert.True(
            actual.Client <= stock.Client && actual.Server <= stock.Server, $"stock: {stock}, with this library's {end}: {actual}");

    /// <summary>Returns the segments with data that both ends sent for a handshake and a byte each way.</summary>
    private static async Task<(long Client, long Server)> CountAsync(
        TlsMode client, TlsMode server, SslProtocols version, string kind)
    {
        string host = $"{client}-{server}-{version}-{Guid.NewGuid():N}.wildcard.test";
        (long, long) counts = default;
        for (int i = 0; i < (kind == "second connection" ? 2 : 1); i++)
        {
            SocketPair sockets = await SocketPair.ConnectAsync();
            await using Meeting meeting = new(client, server, version)
            {
                Sockets = sockets,
                ClientOptions = o =>
                {
                    o.TargetHost = host;
                    o.RemoteCertificateValidationCallback = (_, _, _, _) => true;
                    o.AllowTlsResume = kind != "no resumption";
                    o.ClientCertificates = kind == "client certificate" ? [Certificates.Client] : null;
                },
                ServerOptions = o =>
                {
                    o.AllowTlsResume = kind != "no resumption";
                    o.ClientCertificateRequired = kind == "client certificate";
                    o.RemoteCertificateValidationCallback = (_, _, _, _) => true;
                },
            };
            await meeting.SucceedAsync();
            counts = (TcpInfo.DataSegmentsSent(sockets.Client), TcpInfo.DataSegmentsSent(sockets.Server));
        }

        return counts;
    }
}
