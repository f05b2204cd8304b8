using System.Net.Security;
using System.Security.Authentication;
using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>Tests openssl s_client against a KtlsStream server.</summary>
public class OpenSslClientInteropTests : InteropTest
{
    [Theory]
    [MemberData(nameof(VersionsAndKeys))]
    public async Task It_verifies_our_certificate_and_our_signature(SslProtocols version, string key)
    {
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram client = OpenSslProgram.Connect(listener.Port, directory, version, "-brief");
        await using KtlsStream server = await AcceptAsync(
            listener, version, o => o.ServerCertificateContext = CertificateOf(key));

        await client.ErrorsContain("Verification: OK");
        Assert.Matches($"(?i)signature type: {key}", client.Errors);
        Assert.Equal("localhost", server.TargetHostName);
        await GreetAsync(client, server);
        AssertCounted(before, version);
        await LeaveAsync(client, server);
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task Its_certificate_is_seen(SslProtocols version)
    {
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        (string certificate, string key) = OpenSslProgram.WritePem(Certificates.Client, directory, "client");
        using ExternalProgram client = OpenSslProgram.Connect(
            listener.Port, directory, version, "-brief", "-cert", certificate, "-key", key);
        await using KtlsStream server = await AcceptAsync(listener, version, o => o.ClientCertificateRequired = true);

        Assert.Equal(Certificates.Client.GetCertHashString(), server.RemoteCertificate?.GetCertHashString());
        Assert.True(server.IsMutuallyAuthenticated);
        await GreetAsync(client, server);
        AssertCounted(before, version);
        await LeaveAsync(client, server);
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task Without_a_certificate_it_is_told_what_is_missing(SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram client = OpenSslProgram.Connect(listener.Port, directory, version, "-brief");

        await Assert.ThrowsAsync<AuthenticationException>(
            () => AcceptAsync(listener, version, o => o.ClientCertificateRequired = true));

        // handshake_failure, certificate_required
        await client.ErrorsContain($"SSL alert number {(version == SslProtocols.Tls12 ? 40 : 116)}");
        Assert.NotEqual(0, await client.ExitAsync());
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task It_is_told_the_protocol_we_prefer(SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram client = OpenSslProgram.Connect(listener.Port, directory, version, "-alpn", "unheard-of,http/1.1,h2");
        await using KtlsStream server = await AcceptAsync(
            listener, version, o => o.ApplicationProtocols = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11]);

        Assert.Equal(SslApplicationProtocol.Http2, server.NegotiatedApplicationProtocol);
        await client.OutputUpToAsync("ALPN protocol: h2\n");
        await GreetAsync(client, server);
        await LeaveAsync(client, server);
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task Without_a_common_protocol_it_is_refused(SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram client = OpenSslProgram.Connect(listener.Port, directory, version, "-alpn", "unheard-of");

        await Assert.ThrowsAsync<AuthenticationException>(
            () => AcceptAsync(listener, version, o => o.ApplicationProtocols = [SslApplicationProtocol.Http2]));

        // no_application_protocol
        await client.ErrorsContain("SSL alert number 120");
        Assert.NotEqual(0, await client.ExitAsync());
    }

    /// <summary>
    /// s_client closes the first five of six connections, and offers the first one's session every time.
    /// </summary>
    [Fact]
    public async Task TLS_1_2_sessions_are_resumed_one_after_the_other()
    {
        const int Connections = 6;
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram client = OpenSslProgram.Connect(listener.Port, directory, SslProtocols.Tls12, "-reconnect");
        for (int i = 1; i < Connections; i++)
        {
            await using KtlsStream dropped = await AcceptAsync(listener, SslProtocols.Tls12);
            Assert.Equal(0, await dropped.ReadAsync(new byte[1]).InTime($"close_notify of connection {i}"));
        }

        await using KtlsStream server = await AcceptAsync(listener, SslProtocols.Tls12);

        // s_client's report of each of the six connections begins with this.
        string said = "";
        for (int i = 0; i < Connections; i++)
        {
            said += await client.OutputUpToAsync(", TLSv1.2, Cipher is ");
        }

        Assert.Equal(1, Regex.Count(said, "New, TLSv1.2"));
        Assert.Equal(Connections - 1, Regex.Count(said, "Reused, TLSv1.2"));
        await GreetAsync(client, server);
        AssertCounted(before, SslProtocols.Tls12, Connections);
        await LeaveAsync(client, server);
    }

    [Theory]
    [InlineData(SslProtocols.Tls12, true)]
    [InlineData(SslProtocols.Tls12, false)]
    [InlineData(SslProtocols.Tls13, true)]
    [InlineData(SslProtocols.Tls13, false)]
    public async Task A_saved_session_is_resumed_where_that_is_allowed(SslProtocols version, bool allow)
    {
        TlsStatistics before = TlsStatistics.Read();
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        string text = version == SslProtocols.Tls12 ? "TLSv1.2" : "TLSv1.3";
        using (ExternalProgram first = OpenSslProgram.Connect(listener.Port, directory, version, "-sess_out", directory["session"]))
        {
            await using KtlsStream server = await AcceptAsync(listener, version, o => o.AllowTlsResume = allow);
            Assert.EndsWith(
                $"\nNew, {text}, Cipher is ", await first.OutputUpToAsync($", {text}, Cipher is "), StringComparison.Ordinal);

            // TLS 1.3: the tickets precede the first line.
            await GreetAsync(first, server);
            await LeaveAsync(first, server);
        }

        // A session that cannot be resumed is not stored, so the second client has nothing to offer.
        string[] session = File.Exists(directory["session"]) ? ["-sess_in", directory["session"]] : [];
        Assert.True(session.Length > 0 || !allow, "no session to resume");
        using ExternalProgram second = OpenSslProgram.Connect(listener.Port, directory, version, session);
        await using KtlsStream resumed = await AcceptAsync(listener, version, o => o.AllowTlsResume = allow);

        Assert.EndsWith(
            $"\n{(allow ? "Reused" : "New")}, {text}, Cipher is ",
            await second.OutputUpToAsync($", {text}, Cipher is "),
            StringComparison.Ordinal);
        await GreetAsync(second, resumed);
        AssertCounted(before, version, connections: 2);
        await LeaveAsync(second, resumed);
    }
}
