using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests GnuTLS, which shares no code with OpenSSL: gnutls-cli against a KtlsStream server, and gnutls-serv against a
/// KtlsStream client.
/// </summary>
public class GnuTlsInteropTests : InteropTest
{
    [Theory]
    [MemberData(nameof(VersionsAndKeys))]
    public async Task The_client_verifies_our_certificate_and_speaks_our_protocol(SslProtocols version, string key)
    {
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram client = Connect(listener, directory, version, "--alpn", "unheard-of", "--alpn", "http/1.1");
        await using KtlsStream server = await AcceptAsync(listener, version, o =>
        {
            o.ServerCertificateContext = CertificateOf(key);
            o.ApplicationProtocols = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11];
        });

        Assert.Equal("localhost", server.TargetHostName);
        Assert.Equal(SslApplicationProtocol.Http11, server.NegotiatedApplicationProtocol);
        await GreetAsync(client, server);
        AssertCounted(before, version);
        await LeaveAsync(client, server);

        string log = File.ReadAllText(directory["log"]);
        Assert.Contains("- Application protocol: http/1.1\n", log, StringComparison.Ordinal);
        Assert.Contains("The certificate is trusted", log, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task The_client_s_certificate_is_seen(SslProtocols version)
    {
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        (string certificate, string key) = Certificates.WritePem(Certificates.Client, directory.FullName);
        using ExternalProgram client = Connect(
            listener, directory, version, "--x509certfile", certificate, "--x509keyfile", key);
        await using KtlsStream server = await AcceptAsync(listener, version, o => o.ClientCertificateRequired = true);

        Assert.Equal(Certificates.Client.GetCertHashString(), server.RemoteCertificate?.GetCertHashString());
        Assert.True(server.IsMutuallyAuthenticated);
        await GreetAsync(client, server);
        AssertCounted(before, version);
        await LeaveAsync(client, server);
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task The_client_resumes_its_session(SslProtocols version)
    {
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram client = Connect(listener, directory, version, "--resume", "--waitresumption");
        await using (KtlsStream first = await AcceptAsync(listener, version))
        {
            // With TLS 1.3 it waits for a ticket, which arrives with the handshake, and exits.
            Assert.Equal(0, await first.ReadAsync(new byte[1]).InTime("the first connection's end"));
        }

        await using KtlsStream second = await AcceptAsync(listener, version);
        await GreetAsync(client, second);
        AssertCounted(before, version, connections: 2);
        await LeaveAsync(client, second);
        Assert.Contains("*** This is a resumed session", File.ReadAllText(directory["log"]), StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(VersionsAndKeys))]
    public async Task The_server_echoes(SslProtocols version, string key)
    {
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        using ReservedPort port = new();
        X509Certificate2 certificate = CertificateOf(key).TargetCertificate;
        using ExternalProgram server = await ServeAsync(
            port, certificate, directory, version, "--disable-client-cert", "--alpn", "http/1.1");
        await using KtlsStream client = await ConnectAsync(
            port.Number, version, o => o.ApplicationProtocols = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11]);

        Assert.Equal(certificate.GetCertHashString(), client.RemoteCertificate?.GetCertHashString());
        Assert.Equal(SslApplicationProtocol.Http11, client.NegotiatedApplicationProtocol);
        await EchoAsync(client);
        AssertCounted(before, version);
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task The_server_verifies_our_certificate(SslProtocols version)
    {
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        using ReservedPort port = new();
        using ExternalProgram server = await ServeAsync(
            port, Certificates.Ecdsa, directory, version, "--require-client-cert", "--verify-client-cert");

        await using KtlsStream client = await ConnectAsync(
            port.Number, version, o => o.ClientCertificateContext = Certificates.ClientContext);
        Assert.True(client.IsMutuallyAuthenticated);
        await EchoAsync(client);
        AssertCounted(before, version);
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task The_server_refuses_us_without_a_certificate(SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        using ReservedPort port = new();
        using ExternalProgram server = await ServeAsync(
            port, Certificates.Ecdsa, directory, version, "--require-client-cert", "--verify-client-cert");

        // gnutls-serv closes at once: its alert must be reported, even if the connection breaks while we still write.
        Exception refusal = await RefusalWithoutCertificateAsync(port.Number, version);
        Assert.IsType(version == SslProtocols.Tls12 ? typeof(AuthenticationException) : typeof(IOException), refusal);
    }

    /// <summary>
    /// Starts gnutls-cli with its messages in a file, so that the output contains only what the peer sent.
    /// </summary>
    private static ExternalProgram Connect(
        ForeignPeer listener, TemporaryDirectory directory, SslProtocols version, params string[] more) =>
        ConnectWithoutLog(listener, directory, version, ["--logfile", directory["log"], .. more]);

    /// <summary>Starts gnutls-cli with its messages mixed into the received data.</summary>
    internal static ExternalProgram ConnectWithoutLog(
        ForeignPeer listener, TemporaryDirectory directory, SslProtocols version, params string[] more) =>
        ExternalProgram.Start(
            "gnutls-cli",
            directory.FullName,
            ["--x509cafile", Certificates.WriteAuthority(directory.FullName),
            "--sni-hostname", "localhost", "--verify-hostname", "localhost", "--port", listener.PortText,
            "--priority", Priority(version), .. more, "127.0.0.1"]);

    private static async Task<ExternalProgram> ServeAsync(
        ReservedPort port, X509Certificate2 certificate, TemporaryDirectory directory, SslProtocols version, params string[] more)
    {
        (string certificatePath, string key) = Certificates.WritePem(certificate, directory.FullName);
        ExternalProgram server = ExternalProgram.Start(
            "gnutls-serv",
            directory.FullName,
            ["--echo", "--crlf", "--port", port.ToString(), "--priority", Priority(version), "--x509certfile", certificatePath,
            "--x509keyfile", key, "--x509cafile", Certificates.WriteAuthority(directory.FullName), .. more]);
        await server.ErrorsContain($"listening on IPv4 0.0.0.0 port {port}...done");
        return server;
    }

    /// <summary>Exchanges lines. gnutls-serv returns lines, and nothing before the end of a line.</summary>
    private static async Task EchoAsync(KtlsStream client)
    {
        for (int i = 1; i < 30; i++)
        {
            string question = Convert.ToBase64String(Pattern.Take(i * 25, position: i)) + "\n";
            byte[] answer = new byte[question.Length];
            await client.WriteAsync(Encoding.ASCII.GetBytes(question)).InTime("asking gnutls-serv");
            await client.ReadExactlyAsync(answer).InTime("gnutls-serv's answer");
            Assert.Equal(question, Encoding.ASCII.GetString(answer));
        }
    }

    private static string Priority(SslProtocols version) =>
        $"NORMAL:-VERS-ALL:+VERS-{(version == SslProtocols.Tls12 ? "TLS1.2" : "TLS1.3")}";
}
