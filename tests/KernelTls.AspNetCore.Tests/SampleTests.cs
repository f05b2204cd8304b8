using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests the samples, started like a user does.</summary>
public class SampleTests
{
    [Theory]
    [InlineData("1.1")]
    [InlineData("2.0")]
    public async Task The_file_server_serves_files_and_shows_its_connections(string version)
    {
        Assert.True(KtlsPlatform.Probe().IsSupported || !Cell.KtlsExpected);
        using PatternFile file = new(1_000_000);
        using Application sample = Application.StartProject(
            "KernelTls.FileServer", "--directory", Path.GetDirectoryName(file.FullName)!, "--port", "0");
        Uri address = await sample.AddressAsync();
        string subject = "";
        using HttpClient client = Server.CreateClient(version, handler =>
        {
            handler.SslOptions.CertificateChainPolicy = null;
            handler.SslOptions.RemoteCertificateValidationCallback = (_, certificate, _, _) =>
            {
                subject = certificate!.Subject;
                return true;
            };
        });

        Pattern.AssertAt(0, await client.GetByteArrayAsync(new Uri(address, "/files/file")).InTime());
        Assert.Contains("file</a>", await client.GetStringAsync(new Uri(address, "/files/")).InTime(), StringComparison.Ordinal);
        Assert.Contains("fetch(\"/status\"", await client.GetStringAsync(address).InTime(), StringComparison.Ordinal);
        using JsonDocument status = JsonDocument.Parse(await client.GetStringAsync(new Uri(address, "/status")).InTime());

        Assert.Equal("CN=localhost", subject);
        JsonElement connection = Assert.Single(status.RootElement.GetProperty("connections").EnumerateArray());
        JsonElement kernel = status.RootElement.GetProperty("kernel");
        Assert.Equal("Tls13", connection.GetProperty("protocol").GetString());
        if (KtlsPlatform.Probe().IsSupported)
        {
            Assert.Equal("Kernel", connection.GetProperty("send").GetString());
            Assert.InRange(kernel.GetProperty("TlsTxSw").GetInt64(), 1, long.MaxValue);
        }
        else
        {
            Assert.Equal($"Managed: {KtlsPlatform.Probe().NotSupportedReason}", connection.GetProperty("send").GetString());
            Assert.False(kernel.TryGetProperty("TlsTxSw", out JsonElement counter) && counter.GetInt64() > 0);
        }
    }

    [Fact]
    public async Task The_client_downloads_from_the_file_server_through_the_proxy()
    {
        const int Size = 3_000_001;
        using PatternFile file = new(Size);
        using TemporaryDirectory directory = new();
        (string certificate, string key) = Certificates.WritePem(Certificates.Ecdsa, directory.FullName);
        string[] served =
            ["--port", "0", "--Kestrel:Certificates:Default:Path", certificate, "--Kestrel:Certificates:Default:KeyPath", key];
        (string, string)[] trust = [("SSL_CERT_FILE", Certificates.WriteAuthority(directory.FullName)), ("SSL_CERT_DIR", directory["none"])];

        using Application server = Start("KernelTls.FileServer", [], ["--directory", Path.GetDirectoryName(file.FullName)!, .. served]);
        Uri serverAddress = await server.AddressAsync();
        using Application proxy = Start("KernelTls.Proxy", trust, ["--server", $"https://localhost:{serverAddress.Port}", .. served]);
        Uri proxyAddress = await proxy.AddressAsync();
        using Application client = Start("KernelTls.Client", trust, [$"https://localhost:{proxyAddress.Port}/files/file"]);
        string[] said = (await client.SucceedAsync()).Split('\n', StringSplitOptions.RemoveEmptyEntries);
        using HttpClient browser = Server.CreateClient();
        using JsonDocument status = JsonDocument.Parse(await browser.GetStringAsync(new Uri($"https://localhost:{serverAddress.Port}/status")).InTime());

        KtlsFallbackReason reason = KtlsPlatform.Probe().NotSupportedReason;
        string path = reason == KtlsFallbackReason.None ? "Kernel" : $"Managed: {reason}";
        Assert.Equal([$"Tls13 TLS_AES_256_GCM_SHA384 {(path == "Kernel" ? "send=kernel receive=kernel" : Offloads.Managed(reason))}", $"{Size} bytes"], said);

        // The proxy's connection, which it keeps, and this one, which has just asked.
        string[] sends = [.. status.RootElement.GetProperty("connections").EnumerateArray().Select(c => $"{c.GetProperty("send")}")];
        Assert.Equal([path, path], sends);
        if (reason == KtlsFallbackReason.None)
        {
            // Both ends of the proxy's connection, and the server's of this one. The client has gone.
            await TlsStatistics.UntilAsync(now => now.CurrentSendSoftware == 3, "the proxy's end, the server's two ends, and no other");
        }
    }

    private static Application Start(string project, (string Name, string Value)[] environment, string[] arguments) =>
        Application.Start("dotnet", "", environment, [Application.PathOf(project), .. arguments]);
}
