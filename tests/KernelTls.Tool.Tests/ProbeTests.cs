using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Tests ktls probe against openssl s_server, and against peers that do not use TLS.</summary>
[Trait("cell", "tools")]
public class ProbeTests
{
    private static string Wait { get; } = $"{Limits.Wait.TotalSeconds}";

    [Theory]
    [InlineData(SslProtocols.Tls13, "")]
    [InlineData(SslProtocols.Tls12, "")]
    [InlineData(SslProtocols.Tls13, "TLS_CHACHA20_POLY1305_SHA256")]
    public async Task What_would_become_of_a_connection(SslProtocols version, string suite)
    {
        Assert.True(KtlsPlatform.Probe().IsSupported || !Cell.KtlsExpected);
        using TemporaryDirectory directory = new();
        (ExternalProgram server, string peer) = await ServeAsync(directory, version, suite.Length > 0 ? ["-ciphersuites", suite] : []);
        using ExternalProgram _ = server;

        JsonElement json = (await ProbeAsync(directory, peer, "--json")).Json;

        Schema.AssertMembers(json, "peer", "verdict", "handshake", "offload", "tickets", "records", "keyUpdate");
        TlsCipherSuite negotiated = Enum.Parse<TlsCipherSuite>(json.Text("handshake", "cipherSuite"));
        Assert.Equal(suite.Length > 0 ? suite : negotiated.ToString(), negotiated.ToString());
        Assert.Equal(version.ToString(), json.Text("handshake", "protocol"));
        KtlsFallbackReason send = KtlsPlatform.Probe().GetFallbackReason(KtlsDirections.Send, version, negotiated);
        KtlsFallbackReason receive = KtlsPlatform.Probe().GetFallbackReason(KtlsDirections.Receive, version, negotiated);
        Assert.Equal(send.ToString(), json.Text("offload", "sendReason"));
        Assert.Equal(receive.ToString(), json.Text("offload", "receiveReason"));
        Assert.True(json.GetProperty("offload").GetProperty("kernelImplementsCipher").GetBoolean());
        string verdict = send != KtlsFallbackReason.None ? "no: " : receive != KtlsFallbackReason.None ? "partly: " : "yes: ";
        Assert.StartsWith(verdict, json.Text("verdict"), StringComparison.Ordinal);
        Assert.Equal("True", json.Text("tickets", "resumed"));
        Assert.Equal("Closed", json.Text("records", "ending"));
        Assert.True(json.GetProperty("records").GetProperty("bytes").GetInt64() > 100);
        if (version == SslProtocols.Tls13)
        {
            Assert.Equal("0", json.Text("records", "padded"));
            Assert.Equal("2", json.Text("tickets", "controlRecords")); // s_server sends two
            Assert.Equal("Answered", json.Text("keyUpdate", "outcome"));
        }
        else
        {
            Assert.Equal("0", json.Text("tickets", "controlRecords"));
            Assert.Equal("NotTried", json.Text("keyUpdate", "outcome"));
        }

        if (send == KtlsFallbackReason.None)
        {
            Assert.Equal("1", json.Text("offload", "counters", "TlsTxSw"));
        }
    }

    [Fact]
    public async Task Padding_is_seen()
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, string peer) = await ServeAsync(directory, SslProtocols.Tls13, ["-record_padding", "512"]);
        using ExternalProgram _ = server;

        JsonElement json = (await ProbeAsync(directory, peer, "--json")).Json;

        JsonElement records = json.GetProperty("records");
        Assert.Equal(records.Text("count"), records.Text("padded"));

        // The type, data and padding of a record together are a multiple of 512.
        long content = records.GetProperty("bytes").GetInt64() + records.GetProperty("paddingBytes").GetInt64() + records.GetProperty("count").GetInt64();
        Assert.Equal(0, content % 512);
        Assert.Equal("Accepted", json.Text("keyUpdate", "outcome"));
    }

    [Fact]
    public async Task Text_says_the_same_and_a_cipher_that_no_kernel_has()
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, string peer) = await ServeAsync(
            directory, SslProtocols.Tls12, ["-cipher", "ECDHE-ECDSA-AES128-SHA256"]);
        using ExternalProgram _ = server;

        Ktls.Result result = (await ProbeAsync(directory, peer)).AssertExit(ExitCode.No);

        string reason = KtlsPlatform.Probe().IsSupported ? "CipherNotOffloadable" : KtlsPlatform.Probe().NotSupportedReason.ToString();
        Assert.StartsWith($"{peer}: no: neither direction is in the kernel (TLS 1.2, ", result.Output, StringComparison.Ordinal);
        Assert.Contains($"{reason}: ", result.Output, StringComparison.Ordinal);
        Assert.Contains("none that any kernel implements", result.Output, StringComparison.Ordinal);
        Assert.Contains("CN=localhost", result.Output, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_certificate_that_is_not_trusted()
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, string peer) = await ServeAsync(directory, SslProtocols.Tls13, []);
        using ExternalProgram _ = server;

        Ktls.Result refused = await Ktls.RunAsync("probe", peer, "--timeout", Wait);
        Ktls.Result otherName = await Ktls.RunAsync(
            "probe", peer, "--json", "--timeout", Wait, "--ca", Certificates.WriteAuthority(directory.FullName), "--server-name", "elsewhere.test");
        Ktls.Result insecure = await Ktls.RunAsync("probe", peer, "--timeout", Wait, "--wait", Wait, "--insecure");

        Assert.Contains("is not trusted", refused.AssertExit(ExitCode.NotTrusted).Errors, StringComparison.Ordinal);
        refused.AssertErrors("--ca FILE");
        Schema.AssertMembers(otherName.AssertExit(ExitCode.NotTrusted).Json, "error", "exitCode");
        Assert.Contains("NameMismatch", otherName.Json.Text("error"), StringComparison.Ordinal);
        Assert.Contains("NOT TRUSTED", insecure.Output, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Nobody_there()
    {
        using ReservedPort port = new();
        Ktls.Result result = (await Ktls.RunAsync("probe", $"127.0.0.1:{port}", "--json")).AssertExit(ExitCode.Unreachable);

        result.AssertErrors("cannot be reached: Connection refused");
        Assert.Equal("3", result.Json.Text("exitCode"));
    }

    [Theory]
    [InlineData("220 mail.example ESMTP\r\n", "does not use TLS: it sent '220 mail.example ESMTP")]
    [InlineData("\u001b]0;evil\u0007", "does not use TLS: it sent '?]0;evil?'")]
    [InlineData("", "closed the connection before it sent any TLS data")]
    public async Task Not_TLS(string answer, string expected)
    {
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen();
        using Ktls tool = Ktls.Start("probe", $"127.0.0.1:{((IPEndPoint)listener.LocalEndPoint!).Port}", "--timeout", Wait);
        using (Socket connection = await listener.AcceptAsync().InTime())
        {
            await connection.ReceiveAsync(new byte[4096]).InTime();
            await connection.SendAsync(System.Text.Encoding.ASCII.GetBytes(answer));
            connection.Shutdown(SocketShutdown.Send);
            await connection.ReceiveAsync(new byte[4096]).InTime();
        }

        Ktls.Result result = (await tool.EndAsync()).AssertExit(ExitCode.NoHandshake);
        result.AssertErrors(expected);
        Assert.DoesNotContain('\x1b', result.Errors);
    }

    [Fact]
    public async Task A_peer_that_says_nothing()
    {
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen();
        string peer = $"127.0.0.1:{((IPEndPoint)listener.LocalEndPoint!).Port}";

        // Long enough for a connection on any machine. The handshake has all of it to fail.
        string timeout = string.Create(System.Globalization.CultureInfo.InvariantCulture, $"{Limits.Wait.TotalSeconds / 6}");

        Ktls.Result result = (await Ktls.RunAsync("probe", peer, "--timeout", timeout)).AssertExit(ExitCode.NoHandshake);

        result.AssertErrors("and the peer has sent nothing");
    }

    [Fact]
    public async Task An_interrupt_ends_it()
    {
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen();
        using Ktls tool = Ktls.Start("probe", $"127.0.0.1:{((IPEndPoint)listener.LocalEndPoint!).Port}", "--timeout", "3600");
        using Socket connection = await listener.AcceptAsync().InTime();
        await connection.ReceiveAsync(new byte[4096]).InTime();

        tool.Signal(Ktls.Interrupt);

        (await tool.EndAsync()).AssertExit(ExitCode.Interrupted);
    }

    private static async Task<(ExternalProgram Server, string Peer)> ServeAsync(
        TemporaryDirectory directory, SslProtocols version, string[] more)
    {
        (ExternalProgram server, int port) = await OpenSslProgram.ServeStatusAsync(Certificates.Ecdsa, directory, version, more);
        return (server, $"localhost:{port}");
    }

    private static Task<Ktls.Result> ProbeAsync(TemporaryDirectory directory, string peer, params string[] more) => Ktls.RunAsync(
        ["probe", peer, "--ca", Certificates.WriteAuthority(directory.FullName), "--timeout", Wait, "--wait", Wait, .. more]);
}
