using System.Diagnostics;
using System.Text.Json;
using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>samples/KernelTls.FileServer, as a user starts it.</summary>
public partial class FileServerSampleTests
{
    [Theory]
    [InlineData("1.1")]
    [InlineData("2.0")]
    public async Task It_serves_files_and_shows_its_connections(string version)
    {
        Assert.True(KtlsPlatform.IsSupported || !Cell.KtlsExpected);
        using PatternFile file = new(1_000_000);
        using Process process = Applications.Start(
            "KernelTls.FileServer", [], "--directory", Path.GetDirectoryName(file.FullName)!, "--port", "0");
        try
        {
            Uri address = await AddressAsync(process);
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
            if (KtlsPlatform.IsSupported)
            {
                Assert.Equal("Kernel", connection.GetProperty("send").GetString());
                Assert.InRange(kernel.GetProperty("TlsTxSw").GetInt64(), 1, long.MaxValue);
            }
            else
            {
                Assert.Equal("stock", connection.GetProperty("send").GetString());
                Assert.False(kernel.TryGetProperty("TlsTxSw", out JsonElement counter) && counter.GetInt64() > 0);
            }
        }
        finally
        {
            process.Kill();
        }
    }

    private static async Task<Uri> AddressAsync(Process process)
    {
        for (string said = ""; ;)
        {
            string? line = await process.StandardOutput.ReadLineAsync().InTime($"the address; the sample says: {said}");
            Assert.True(line is not null, $"The sample ended: {said}");
            said += line + "\n";
            if (Address().Match(line!) is { Success: true } match)
            {
                return new Uri(match.Groups[1].Value);
            }
        }
    }

    [GeneratedRegex(@"listening on: (https://\S+)")]
    private static partial Regex Address();
}
