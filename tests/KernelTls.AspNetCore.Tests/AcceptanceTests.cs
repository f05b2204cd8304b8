using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests the main job: Kestrel sends a file, and HttpClient, curl and OpenSSL's client receive it. The kernel's counters say who
/// encrypted and decrypted. On the distributions' own kernels this class and <c>ktls info</c> run alone.
/// </summary>
[Trait("cell", "smoke")]
public class AcceptanceTests
{
    private const int Size = 5_000_001;

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_file_arrives_at_HttpClient_curl_and_OpenSSL(TlsMode mode, SslProtocols version)
    {
        await using InteropServer server = await InteropServer.StartAsync(mode);
        server.AddFile("file", Size);

        using (ModeClient client = new(mode, "1.1", handler => handler.SslOptions.EnabledSslProtocols = version))
        {
            File.WriteAllBytes(server.Directory["body"], await client.Http.GetByteArrayAsync(new Uri(server.Server.Https, "/file")).InTime("HttpClient"));
            Assert.Equal(Offloads.Expected(mode, version), await client.Http.GetStringAsync(new Uri(server.Server.Https, "/offload")).InTime());
            Assert.Single(client.Streams);
        }

        server.AssertReceived("body", Size);
        await server.CurlAsync(version, "--output", server.Directory["curl"], server.Address("/file"));
        server.AssertReceived("curl", Size);
        await DownloadAsync(server, version);

        // Both ends of HttpClient's connection, and the server's of the other two.
        server.AssertConnections(4, version);
    }

    /// <summary>OpenSSL's client knows TLS and no HTTP.</summary>
    private static async Task DownloadAsync(InteropServer server, SslProtocols version)
    {
        using ExternalProgram client = OpenSslProgram.Connect(server.Port, server.Directory, version, "-quiet");
        await client.Input.WriteAsync("GET /file HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"u8.ToArray());
        await client.Input.FlushAsync();
        Assert.StartsWith("HTTP/1.1 200 OK\r\n", await client.OutputUpToAsync("\r\n\r\n"), StringComparison.Ordinal);
        await Pattern.ReceiveAsync(client.Output, Size).InTime("OpenSSL's client");
        Assert.Equal(0, await client.Output.ReadAsync(new byte[1]).InTime("the end of the output"));
        await client.ExitAsync();
    }
}
