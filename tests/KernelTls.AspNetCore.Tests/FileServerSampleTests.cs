using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests samples/KernelTls.FileServer, started like a user does.</summary>
public class FileServerSampleTests
{
    [Theory]
    [InlineData("1.1")]
    [InlineData("2.0")]
    public async Task It_serves_files_and_shows_its_connections(string version)
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
}
