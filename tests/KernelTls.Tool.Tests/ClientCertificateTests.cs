using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Tests probe and connect with peers that request a client certificate, and peers that refuse this client.</summary>
[Trait("cell", "tools")]
public class ClientCertificateTests
{
    private static readonly string[] s_required = ["-Verify", "1", "-verify_return_error"];

    public static TheoryData<string, SslProtocols> Commands => new()
    {
        { "probe", SslProtocols.Tls12 },
        { "probe", SslProtocols.Tls13 },
        { "connect", SslProtocols.Tls13 },
    };

    [Theory]
    [MemberData(nameof(Commands))]
    public async Task A_peer_that_requires_one_refuses_a_client_without(string command, SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeStatusAsync(Certificates.Ecdsa, directory, version, s_required);
        using ExternalProgram _ = server;

        Ktls.Result result = await RunAsync(command, port, directory);

        AssertRefused(
            result,
            version == SslProtocols.Tls13
                ? $"localhost:{port} refused this client after the handshake with the alert certificate_required. It requires a client certificate: specify one with --certificate"
                : $"localhost:{port} refused this client in the handshake with the alert handshake_failure. It requires a client certificate: specify one with --certificate");
    }

    [Theory]
    [MemberData(nameof(Commands))]
    public async Task A_certificate_that_the_peer_does_not_accept_is_named(string command, SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeStatusAsync(Certificates.Ecdsa, directory, version, s_required);
        using ExternalProgram _ = server;
        (string certificate, string key) = OpenSslProgram.WritePem(Certificates.SelfSigned, directory, "stranger");

        Ktls.Result result = await RunAsync(command, port, directory, "--certificate", certificate, "--key", key);

        AssertRefused(result, $"with the alert unknown_ca. It does not accept the certificate {Certificates.SelfSigned.Subject};");
    }

    [Theory]
    [InlineData(SslProtocols.Tls12, "pem")]
    [InlineData(SslProtocols.Tls13, "pem")]
    [InlineData(SslProtocols.Tls13, "pfx")]
    [InlineData(SslProtocols.Tls13, "pfx with a password")]
    public async Task A_certificate_that_it_accepts(SslProtocols version, string form)
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeStatusAsync(Certificates.Ecdsa, directory, version, s_required);
        using ExternalProgram _ = server;
        string[] own = Write(directory, form);

        JsonElement json = (await RunAsync("probe", port, directory, own)).Json;
        Ktls.Result connect = await RunAsync("connect", port, directory, own, "GET / HTTP/1.0\r\n\r\n");

        Assert.Equal(JsonValueKind.Null, json.GetProperty("handshake").GetProperty("certificateRequested").ValueKind);
        Assert.Equal("Closed", json.Text("records", "ending"));
        Assert.True(json.GetProperty("records").GetProperty("bytes").GetInt64() > 100);
        Assert.Equal("True", json.Text("tickets", "resumed"));
        Assert.Equal(version == SslProtocols.Tls13 ? "Answered" : "NotTried", json.Text("keyUpdate", "outcome"));
        Assert.Contains(Certificates.Client.Subject.Replace("CN=", "", StringComparison.Ordinal), connect.AssertExit(ExitCode.Ok).Output, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_request_that_can_be_left_unanswered_is_reported()
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeStatusAsync(Certificates.Ecdsa, directory, SslProtocols.Tls13, "-verify", "1");
        using ExternalProgram asking = server;
        (ExternalProgram other, int otherPort) = await OpenSslProgram.ServeStatusAsync(Certificates.Ecdsa, directory, SslProtocols.Tls13);
        using ExternalProgram silent = other;

        Assert.Equal("True", (await RunAsync("probe", port, directory)).Json.Text("handshake", "certificateRequested"));
        Assert.Equal("False", (await RunAsync("probe", otherPort, directory)).Json.Text("handshake", "certificateRequested"));
    }

    /// <summary>A peer that closes after each handshake has not refused a KeyUpdate.</summary>
    [Fact]
    public async Task What_the_peer_does_anyway_is_not_blamed_on_the_key_update()
    {
        using TemporaryDirectory directory = new();
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        int port = ((IPEndPoint)listener.LocalEndpoint).Port;
        using CancellationTokenSource end = new();
        Task serving = ServeAsync();

        JsonElement json = (await RunAsync("probe", port, directory)).Json;

        await end.CancelAsync();
        await serving.InTime();
        Assert.Equal("0", json.Text("records", "count"));
        Assert.Equal("Unknown", json.Text("keyUpdate", "outcome"));

        async Task ServeAsync()
        {
            try
            {
                while (true)
                {
                    using TcpClient client = await listener.AcceptTcpClientAsync(end.Token);
                    await using SslStream stream = new(client.GetStream());
                    await stream.AuthenticateAsServerAsync(
                        new SslServerAuthenticationOptions { ServerCertificateContext = Certificates.EcdsaContext }, end.Token);
                    await stream.ReadAsync(new byte[4096], end.Token);
                    await stream.ShutdownAsync();
                }
            }
            catch (OperationCanceledException)
            {
            }
        }
    }

    private static void AssertRefused(Ktls.Result result, string expected)
    {
        result.AssertExit(ExitCode.Refused).AssertErrors(expected);
        Assert.DoesNotContain("KeyUpdate", result.Errors, StringComparison.Ordinal);
        Assert.DoesNotContain("in the kernel", result.Output, StringComparison.Ordinal);
        JsonElement failure = JsonDocument.Parse((result.Output + result.Errors).Split('\n').Single(l => l.Contains("exitCode", StringComparison.Ordinal))).RootElement;
        Assert.Equal(ExitCode.Refused, failure.GetProperty("exitCode").GetInt32());
    }

    private static string[] Write(TemporaryDirectory directory, string form)
    {
        if (form == "pem")
        {
            (string certificate, string key) = OpenSslProgram.WritePem(Certificates.Client, directory, "client");
            return ["--certificate", certificate, "--key", key];
        }

        string? password = form == "pfx" ? null : "a secret";
        File.WriteAllBytes(directory["client.p12"], Certificates.Client.Export(X509ContentType.Pfx, password));
        File.WriteAllText(directory["password"], password + "\n");
        return ["--certificate", directory["client.p12"], .. password is null ? (string[])[] : ["--password-file", directory["password"]]];
    }

    private static Task<Ktls.Result> RunAsync(string command, int port, TemporaryDirectory directory, params string[] more) =>
        RunAsync(command, port, directory, more, "");

    private static async Task<Ktls.Result> RunAsync(string command, int port, TemporaryDirectory directory, string[] more, string input)
    {
        string wait = $"{Limits.Wait.TotalSeconds}";
        using Ktls tool = Ktls.Start(
            [command, $"localhost:{port}", "--ca", Certificates.WriteAuthority(directory.FullName), "--timeout", wait, "--json", .. more,
            .. command == "probe" ? (string[])["--wait", wait] : ["--ignore-eof"]]);
        await tool.Input.WriteAsync(input);
        tool.Input.Close();
        return await tool.EndAsync();
    }
}
