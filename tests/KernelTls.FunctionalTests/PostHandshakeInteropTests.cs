using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests post-handshake authentication (RFC 8446, section 4.6.2) with openssl as the peer and keys in the kernel.
/// </summary>
[Trait("cell", "smoke")]
public class PostHandshakeInteropTests : InteropTest
{
#pragma warning disable CA1416 // Linux
    [Fact]
    public async Task It_shows_its_certificate_when_we_ask_later()
    {
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        (string certificate, string key) = OpenSslProgram.WritePem(Certificates.Client, directory, "client");
        using ExternalProgram client = OpenSslProgram.Connect(
            listener.Port, directory, SslProtocols.Tls13, "-brief", "-enable_pha", "-cert", certificate, "-key", key);
        await using KtlsStream server = await AcceptAsync(listener, SslProtocols.Tls13);
        await GreetAsync(client, server);
        Assert.Null(server.RemoteCertificate);

        await server.NegotiateClientCertificateAsync().InTime("the client's certificate");

        Assert.Equal(Certificates.Client.GetCertHashString(), server.RemoteCertificate?.GetCertHashString());
        Assert.Equal(KtlsDataPath.Kernel, server.Offload.Send);
        await GreetAsync(client, server);
        AssertCounted(before, SslProtocols.Tls13);
        await LeaveAsync(client, server);
    }

    [Fact]
    public async Task It_cannot_be_asked_where_it_did_not_offer_that()
    {
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram client = OpenSslProgram.Connect(listener.Port, directory, SslProtocols.Tls13, "-brief");
        await using KtlsStream server = await AcceptAsync(listener, SslProtocols.Tls13);

        if (Environment.Version.Major >= 11)
        {
            await server.NegotiateClientCertificateAsync().InTime("the first negotiation");
        }

        await Assert.ThrowsAsync<InvalidOperationException>(() => server.NegotiateClientCertificateAsync().InTime());
        Assert.Null(server.RemoteCertificate);

        await GreetAsync(client, server);
        await LeaveAsync(client, server);
    }

    [Fact]
    public async Task Asked_later_we_show_our_certificate()
    {
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        (ExternalProgram program, int port) = await OpenSslProgram.ServeInteractivelyAsync(
            Certificates.Ecdsa, directory, SslProtocols.Tls13);
        using ExternalProgram server = program;
        await using KtlsStream client = await ConnectAsync(
            port, SslProtocols.Tls13, o => o.ClientCertificateContext = Certificates.ClientContext);
        await GreetAsync(server, client);
        Assert.Null(client.LocalCertificate);

        // The client answers while it reads.
        byte[] line = new byte[6];
        ValueTask reading = client.ReadExactlyAsync(line);
        await server.Input.WriteAsync("c\n"u8.ToArray());
        await server.Input.FlushAsync();
        await server.OutputUpToAsync("CertificateVerify");
        await server.Input.WriteAsync("hello\n"u8.ToArray());
        await server.Input.FlushAsync();
        await reading.InTime("what the server says afterwards");

        Assert.Equal("hello\n"u8.ToArray(), line);
        Assert.Equal(Certificates.Client.GetCertHashString(), client.LocalCertificate?.GetCertHashString());
        Assert.True(client.IsMutuallyAuthenticated);
        Assert.Equal(KtlsDataPath.Kernel, client.Offload.Send);
        await GreetAsync(server, client);
        AssertCounted(before, SslProtocols.Tls13);
    }
#pragma warning restore CA1416
}
