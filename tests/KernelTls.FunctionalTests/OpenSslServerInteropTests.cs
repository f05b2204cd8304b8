using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>Tests openssl s_server against a KtlsStream client.</summary>
public class OpenSslServerInteropTests : InteropTest
{
    [Theory]
    [MemberData(nameof(VersionsAndKeys))]
    public async Task Its_certificate_and_signature_are_verified(SslProtocols version, string key)
    {
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        X509Certificate2 certificate = CertificateOf(key).TargetCertificate;
        (ExternalProgram program, int port) = await OpenSslProgram.ServeAsync(certificate, directory, version);
        using ExternalProgram server = program;
        await using KtlsStream client = await ConnectAsync(port, version);

        Assert.Equal(certificate.GetCertHashString(), client.RemoteCertificate?.GetCertHashString());
        await ExchangeAsync(client);
        AssertCounted(before, version);
        await CloseAsync(client);
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task It_verifies_our_certificate(SslProtocols version)
    {
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        (ExternalProgram program, int port) = await OpenSslProgram.ServeAsync(
            Certificates.Ecdsa, directory, version, "-Verify", "2", "-verify_return_error");
        using ExternalProgram server = program;
        await using KtlsStream client = await ConnectAsync(
            port, version, o => o.ClientCertificateContext = Certificates.ClientContext);

        Assert.True(client.IsMutuallyAuthenticated);
        Assert.Equal(Certificates.Client.GetCertHashString(), client.LocalCertificate?.GetCertHashString());
        await server.ErrorsContain("Verification: OK");
        Assert.Matches("Peer certificate: CN ?= ?a client", server.Errors);
        await ExchangeAsync(client);
        AssertCounted(before, version);
        await CloseAsync(client);
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task Asked_for_a_certificate_we_have_none(SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram program, int port) = await OpenSslProgram.ServeAsync(
            Certificates.Ecdsa, directory, version, "-Verify", "2", "-verify_return_error");
        using ExternalProgram server = program;

        Exception refusal = await RefusalWithoutCertificateAsync(port, version);
        Assert.IsAssignableFrom(version == SslProtocols.Tls12 ? typeof(AuthenticationException) : typeof(IOException), refusal);
        await server.ErrorsContain("peer did not return a certificate");
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task It_chooses_its_certificate_by_the_name_we_ask_for(SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        (string certificate, string key) = OpenSslProgram.WritePem(Certificates.Rsa, directory, "named");
        (ExternalProgram program, int port) = await OpenSslProgram.ServeAsync(
            Certificates.WrongName, directory, version, "-servername", "localhost", "-cert2", certificate, "-key2", key);
        using ExternalProgram server = program;

        await using (KtlsStream client = await ConnectAsync(port, version))
        {
            Assert.Equal(Certificates.Rsa.GetCertHashString(), client.RemoteCertificate?.GetCertHashString());
            await ExchangeAsync(client);
            await CloseAsync(client);
        }

        await using KtlsStream other = await ConnectAsync(port, version, o => o.TargetHost = "elsewhere.test");
        Assert.Equal(Certificates.WrongName.GetCertHashString(), other.RemoteCertificate?.GetCertHashString());
        await ExchangeAsync(other);
        await CloseAsync(other);
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task It_tells_us_the_protocol(SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram program, int port) = await OpenSslProgram.ServeAsync(
            Certificates.Ecdsa, directory, version, "-alpn", "http/1.1");
        using ExternalProgram server = program;

        await using (KtlsStream client = await ConnectAsync(
            port, version, o => o.ApplicationProtocols = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11]))
        {
            Assert.Equal(SslApplicationProtocol.Http11, client.NegotiatedApplicationProtocol);
            await ExchangeAsync(client);
            await CloseAsync(client);
        }

        await Assert.ThrowsAsync<AuthenticationException>(
            () => ConnectAsync(port, version, o => o.ApplicationProtocols = [SslApplicationProtocol.Http2]));
        await server.ErrorsContain("no application protocol");
    }

    [Theory]
    [InlineData(SslProtocols.Tls12, true)]
    [InlineData(SslProtocols.Tls12, false)]
    [InlineData(SslProtocols.Tls13, true)]
    [InlineData(SslProtocols.Tls13, false)]
    public async Task We_resume_its_session_where_that_is_allowed(SslProtocols version, bool allow)
    {
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        (ExternalProgram program, int port) = await OpenSslProgram.ServeStatusAsync(Certificates.Ecdsa, directory, version);
        using ExternalProgram server = program;

        foreach (string expected in new[] { "New", allow ? "Reused" : "New" })
        {
            await using KtlsStream client = await ConnectAsync(port, version, o => o.AllowTlsResume = allow);
            await client.WriteAsync("GET / HTTP/1.0\r\n\r\n"u8.ToArray()).InTime("the request");
            string page = await new StreamReader(client).ReadToEndAsync().InTime("the page");
            Assert.Contains(
                $"\n{expected}, {(version == SslProtocols.Tls12 ? "TLSv1.2" : "TLSv1.3")}, Cipher is ", page, StringComparison.Ordinal);
        }

        AssertCounted(before, version, connections: 2);
    }

    private static async Task ExchangeAsync(KtlsStream client)
    {
        byte[] answer = new byte[7];
        await client.WriteAsync("palace\n"u8.ToArray()).InTime("asking s_server");
        await client.ReadExactlyAsync(answer).InTime("s_server's answer");
        Assert.Equal("ecalap\n", Encoding.ASCII.GetString(answer));
    }

    private static async Task CloseAsync(KtlsStream client)
    {
        await client.WriteAsync("CLOSE\n"u8.ToArray()).InTime("asking s_server to close");
        Assert.Equal(0, await client.ReadAsync(new byte[1]).InTime("s_server's close_notify"));
    }
}
