using System.Globalization;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Tests ktls serve with curl and openssl s_client.</summary>
[Trait("cell", "tools")]
public class ServeTests
{
    [Theory]
    [InlineData("--http1.1", SslProtocols.Tls12)]
    [InlineData("--http1.1", SslProtocols.Tls13)]
    [InlineData("--http2", SslProtocols.Tls13)]
    public async Task Files_and_what_became_of_each_connection(string http, SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        using PatternFile file = new(1_000_000);
        (string certificate, string key) = Certificates.WritePem(Certificates.Ecdsa, directory.FullName);
        using Ktls tool = Ktls.Start(
            "serve", Path.GetDirectoryName(file.FullName)!, "--port", "0", "--certificate", certificate, "--key", key, "--json");
        int port = await PortAsync(tool);

        using ExternalProgram curl = Curl.Start(port, directory, version, http, "--output", directory["got"], Curl.Address(port, "/file"));
        await curl.SucceedAsync();
        JsonElement opened = JsonDocument.Parse(await tool.LineAsync()).RootElement;
        JsonElement closed = JsonDocument.Parse(await tool.LineAsync()).RootElement;
        tool.Signal(Ktls.Interrupt);
        Ktls.Result result = (await tool.EndAsync()).AssertExit(ExitCode.Ok);

        Pattern.AssertAt(0, await File.ReadAllBytesAsync(directory["got"]));
        Schema.AssertMembers(opened, "event", "connection");
        Schema.AssertMembers(opened.GetProperty("connection"), "id", "client", "protocol", "cipherSuite", "applicationProtocol", "offload");
        Schema.AssertMembers(closed, "event", "id", "seconds", "open", "counters");
        Assert.Equal(version.ToString(), opened.Text("connection", "protocol"));
        Assert.Equal(http == "--http2" ? "h2" : "http/1.1", opened.Text("connection", "applicationProtocol"));
        Assert.Equal(opened.Text("connection", "id"), closed.Text("id"));
        Schema.AssertMembers(result.Json, "event", "connections", "counters");
        Assert.Equal("1", result.Json.Text("connections"));
        if (KtlsPlatform.Probe().IsSupported)
        {
            Assert.StartsWith("send=kernel", opened.Text("connection", "offload"), StringComparison.Ordinal);
            Assert.Equal("1", closed.Text("counters", "TlsTxSw"));
        }
        else
        {
            Assert.False(Cell.KtlsExpected);
            Assert.Equal("stock", opened.Text("connection", "offload"));
        }
    }

    [Fact]
    public async Task A_certificate_of_its_own_and_text()
    {
        using TemporaryDirectory directory = new();
        await File.WriteAllTextAsync(directory["hello.txt"], "hello");
        await File.WriteAllTextAsync(directory[".secret"], "not for you");
        using Ktls tool = Ktls.Start("serve", directory.FullName, "--port", "0");
        string listening = await tool.LineAsync();
        string port = listening.Split(':')[^1];
        string verdict = await tool.LineAsync();

        using ExternalProgram client = ExternalProgram.Start(
            "openssl", null, "s_client", "-connect", $"127.0.0.1:{port}", "-servername", "localhost", "-ign_eof", "-nocommands");
        await client.SayAsync("GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r");
        using StreamReader reader = new(client.Output);
        string seen = await reader.ReadToEndAsync().InTime("the client's output to end"); // the stock SslStream ends without close_notify
        using ExternalProgram curl = ExternalProgram.Start(
            "curl", null, "--silent", "--insecure", "--output", "/dev/null", "--write-out", "%{http_code}", $"https://127.0.0.1:{port}/.secret");
        string hidden = await curl.SucceedAsync();
        tool.Signal(Ktls.Interrupt);
        Ktls.Result result = (await tool.EndAsync()).AssertExit(ExitCode.Ok);

        Assert.StartsWith("serving ", listening, StringComparison.Ordinal);
        Assert.StartsWith(KtlsPlatform.Probe().IsSupported ? "kernel TLS is available here" : "no kernel TLS here", verdict, StringComparison.Ordinal);
        Assert.Contains("CN = localhost", seen.Replace("CN=localhost", "CN = localhost", StringComparison.Ordinal), StringComparison.Ordinal);
        Assert.Contains("\r\n\r\nhello", seen, StringComparison.Ordinal);
        Assert.Equal("404", hidden);
        Assert.Contains("stopped after 2 connections", result.Output, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData(true, "", "EOF|closed the connection during")]
    [InlineData(true, "GET / HTTP/1.1\r\n\r\n", "not.*frame|Cannot determine|does not use TLS")]
    [InlineData(false, "GET / HTTP/1.1\r\n\r\n", "not.*frame|Cannot determine|does not use TLS")]
    public async Task A_client_that_does_not_finish_its_handshake_is_told_of_and_why(bool json, string says, string why)
    {
        using TemporaryDirectory directory = new();
        using Ktls tool = Ktls.Start(["serve", directory.FullName, "--port", "0", .. json ? (string[])["--json"] : []]);
        int port;
        if (json)
        {
            port = await PortAsync(tool);
        }
        else
        {
            port = int.Parse((await tool.LineAsync()).Split(':')[^1], CultureInfo.InvariantCulture);
            await tool.LineAsync();
        }

        using (TcpClient client = new("127.0.0.1", port))
        {
            await client.GetStream().WriteAsync(System.Text.Encoding.ASCII.GetBytes(says));
        }

        string line = await tool.LineAsync();
        tool.Signal(Ktls.Interrupt);
        Ktls.Result result = (await tool.EndAsync()).AssertExit(ExitCode.Ok);
        if (json)
        {
            JsonElement failed = JsonDocument.Parse(line).RootElement;
            Schema.AssertMembers(failed, "event", "id", "client", "seconds", "why");
            Assert.Matches(why, failed.Text("why"));
            Assert.Equal("failed", failed.Text("event"));
            Assert.StartsWith("127.0.0.1:", failed.Text("client"), StringComparison.Ordinal);
            Assert.Equal("0", result.Json.Text("connections"));
        }
        else
        {
            Assert.StartsWith("! ", line, StringComparison.Ordinal);
            Assert.Contains(" 127.0.0.1:", line, StringComparison.Ordinal);
            Assert.Contains("no handshake", line, StringComparison.Ordinal);
            Assert.Matches($" s: .*({why})", line);
            Assert.Contains("stopped after 0 connections", result.Output, StringComparison.Ordinal);
        }
    }

    private static async Task<int> PortAsync(Ktls tool)
    {
        JsonElement listening = JsonDocument.Parse(await tool.LineAsync()).RootElement;
        Schema.AssertMembers(listening, "event", "address", "directory", "supported", "reason");
        return new Uri(listening.Text("address")).Port;
    }
}
