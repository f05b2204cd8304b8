using System.Globalization;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests the kernel's own view of the server's connections. Requires kernel TLS.</summary>
[Trait("cell", "smoke")]
public class KernelTests
{
    [Theory]
    [InlineData(SslProtocols.Tls12)]
    [InlineData(SslProtocols.Tls13)]
    public async Task The_kernel_has_the_keys(SslProtocols version)
    {
        Cell.RequireKtls();
        Socket? accepted = null;
        await using Server server = await Server.StartAsync(TlsMode.Kernel, https =>
        {
            https.SslProtocols = version;
            https.OnAuthenticate = (connection, _) => accepted = connection.Features.Get<IConnectionSocketFeature>()!.Socket;
        });
        using HttpClient client = Server.CreateClient("2.0");
        TlsStatistics before = TlsStatistics.Read();

        Assert.Equal(Offloads.Expected(TlsMode.Kernel, version), await client.GetStringAsync(new Uri(server.Https, "/offload")).InTime());
        Pattern.AssertAt(0, await client.GetByteArrayAsync(new Uri(server.Https, "/bytes/3000000")).InTime());
        using ByteArrayContent content = new(Pattern.Take(3_000_000));
        using HttpResponseMessage posted = await client.PostAsync(new Uri(server.Https, "/check"), content).InTime();

        Assert.Equal("3000000 HTTP/2", await posted.Content.ReadAsStringAsync().InTime());
        TlsStatistics after = TlsStatistics.Read();
        int receives = version == SslProtocols.Tls13 && KtlsPlatform.Probe().OpenSslVersion < new Version(3, 2) ? 0 : 1;
        Assert.Equal(1, after.SendSoftware - before.SendSoftware);
        Assert.Equal(receives, after.ReceiveSoftware - before.ReceiveSoftware);
        Assert.Equal(0, after.DecryptError - before.DecryptError);
        Assert.Equal(receives == 1 ? KtlsDirections.Both : KtlsDirections.Send, KernelWord.DirectionsOf(accepted!));
    }

    /// <summary>
    /// Data moved by sendfile counts as written by system calls (/proc/self/io); data sent from memory does not.
    /// </summary>
    [Theory]
    [InlineData("1.1", true)]
    [InlineData("2.0", false)]
    public async Task The_kernel_sends_files(string version, bool expected)
    {
        Cell.RequireKtls();
        const int Size = 8_000_000;
        using PatternFile file = new(Size);
        await using Server server = await Server.StartAsync(TlsMode.Kernel, application: application => application.Map("/file", context =>
        {
            context.Response.ContentLength = Size;
            return context.Response.SendFileAsync(file.FullName);
        }));
        using HttpClient client = Server.CreateClient(version);
        await Offloads.AssertInAsync(TlsMode.Kernel, client, server.Https);
        long before = BytesWritten();

        Pattern.AssertAt(0, await client.GetByteArrayAsync(new Uri(server.Https, "/file")).InTime());

        long written = BytesWritten() - before;
        Assert.Equal(expected, written >= Size);
        Assert.InRange(written, 0, Size + (Size / 10));
    }

    private static long BytesWritten() => long.Parse(
        File.ReadLines("/proc/self/io").Single(l => l.StartsWith("wchar:", StringComparison.Ordinal))[6..], CultureInfo.InvariantCulture);
}
