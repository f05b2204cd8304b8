using System.Security.Authentication;
using System.Security.Cryptography;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>Tests files that the kernel sends to third-party programs.</summary>
public class SendFileInteropTests : InteropTest
{
    private const int Length = 5_000_003;

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task OpenSSL_s_client_receives_the_file(SslProtocols version)
    {
        TlsStatistics before = TlsStatistics.Read();
        using PatternFile file = new(Length);
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram client = OpenSslProgram.Connect(listener.Port, directory, version, "-quiet");
        KtlsStream server = await AcceptAsync(listener, version);

        Task sending = SendAndCloseAsync(server, file);
        byte[] hash = await SHA256.HashDataAsync(client.Output).InTime("the file and the end");
        await sending.InTime();

        Assert.Equal(HashOf(file), hash);
        Assert.True(await client.ExitAsync() == 0, client.Errors);
        AssertCounted(before, version);
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task Curl_downloads_the_file(SslProtocols version)
    {
        TlsStatistics before = TlsStatistics.Read();
        using PatternFile file = new(Length);
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram curl = CurlInteropTests.Start(
            listener, directory, version, "--http1.1", "--output", directory["download"]);
        KtlsStream server = await AcceptAsync(listener, version);
        await ReadHeaderAsync(server);

        await server.WriteAsync(Encoding.ASCII.GetBytes($"HTTP/1.1 200 OK\r\nContent-Length: {Length}\r\n\r\n")).InTime("the header");
        await SendAndCloseAsync(server, file).InTime("the body");

        Assert.True(await curl.ExitAsync() == 0, curl.Errors);
        Assert.Equal(HashOf(file), SHA256.HashData(File.ReadAllBytes(directory["download"])));
        AssertCounted(before, version);
    }

    private static async Task SendAndCloseAsync(KtlsStream server, PatternFile file)
    {
        await using (server)
        {
            await server.SendFileAsync(file.Handle, 0, Length);
        }
    }

    private static byte[] HashOf(PatternFile file) => SHA256.HashData(File.ReadAllBytes(file.FullName));
}
