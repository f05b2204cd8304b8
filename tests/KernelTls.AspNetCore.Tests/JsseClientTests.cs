using System.Security.Cryptography;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests a Java client with small key limits on a kept-alive connection. While Kestrel sends a response it does not
/// read what the client sends: KeyUpdates, and then the next request.
/// </summary>
[Trait("loop", "weekly")]
public class JsseClientTests
{
    private static readonly string[] s_limits = ["2^20", "2^25"];

    /// <summary>Gets the modes for such a client: the kernel if it can change keys, and OpenSSL otherwise.</summary>
    public static TheoryData<TlsMode, string> ModesAndLimits =>
    [
        .. from mode in Modes.Costly.Where(m => m != TlsMode.Kernel || KtlsPlatform.Probe().CanRekey).DefaultIfEmpty(TlsMode.DirectOpenSsl)
            from limit in s_limits
            select new TheoryDataRow<TlsMode, string>(mode, limit),
    ];

    [Theory]
    [Trait("Pitfall", "4")]
    [MemberData(nameof(ModesAndLimits))]
    public async Task Requests_follow_downloads_and_uploads_on_one_connection(TlsMode mode, string limit)
    {
        long size = JssePeer.SizeFor(limit);
        string pattern = JssePeer.DigestOfPattern(size);
        string empty = Convert.ToHexString(SHA256.HashData([]));
        HashSet<string> connections = [];
        List<string> received = [];
        await using Server server = await Server.StartAsync(
            mode,
            kestrel: o => o.Limits.MaxRequestBodySize = null,
            application: app => app.Run(async context =>
            {
                connections.Add(context.Connection.Id);
                if (context.Request.Method == "POST")
                {
                    received.Add(await JssePeer.DigestOfAsync(context.Request.Body, size));
                    context.Response.ContentLength = 0;
                    return;
                }

                context.Response.ContentLength = size;
                await Pattern.SendAsync(context.Response.Body, size, chunk: 50_000);
            }));
        using JssePeer peer = await JssePeer.ConnectAsync(server.Https.Port, limit);
        for (int round = 0; round < 2; round++)
        {
            Assert.Equal($"200 {pattern}", await peer.RunAsync("get /"));
            string[] uploaded = (await peer.RunAsync($"post / {size}")).Split(' ');
            Assert.Equal([received[round], "200", empty], uploaded);
        }

        Assert.Equal($"200 {pattern}", await peer.RunAsync("get /"));
        Assert.Single(connections);
        await peer.CloseAsync();
    }
}
