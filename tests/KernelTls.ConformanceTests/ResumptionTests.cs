using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests connections after the first one, for which both ends would resume a session. Whether they do is not visible,
/// but every decision about the first connection must be made again. Each test has a separate host name and therefore a
/// separate place in the caches.
/// </summary>
public class ResumptionTests
{
    /// <summary>The end in the mode under test. The other end is SslStream.</summary>
    private static readonly string[] s_sides = ["client", "server", "both"];

    public static TheoryData<TlsMode, SslProtocols, string> Sides => Modes.AllWith<string>(s_sides);

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols, string> Switches => Modes.AllWith("neither", "client", "server", "both");

    [Theory]
    [MemberData(nameof(Sides))]
    public async Task Every_connection_is_judged_and_carries_data(TlsMode mode, SslProtocols version, string side)
    {
        string host = NewHost();
        for (int i = 0; i < 4; i++)
        {
            Calls calls = new();
            await using Meeting meeting = await Connect(mode, version, side, host, validation: (_, certificate, chain, errors) =>
            {
                calls.Add(certificate, chain!.ChainElements.Count, errors);
                return true;
            }).SucceedAsync();

            Assert.Equal(["CN=wildcard | 2 | None"], calls.List);
            Assert.Equal(Certificates.Kind("wildcard").GetCertHashString(), meeting.Client.RemoteCertificate!.GetCertHashString());
            Assert.Equal(Certificates.Kind("wildcard").GetCertHashString(), meeting.Server.LocalCertificate!.GetCertHashString());
            Assert.Equal(version, meeting.Client.SslProtocol);
            Assert.Equal(host, meeting.Server.TargetHostName);
            await ExchangeAsync(meeting);
        }
    }

    [Theory]
    [MemberData(nameof(Sides))]
    public async Task Several_hosts_of_one_server_are_each_judged_by_their_name(TlsMode mode, SslProtocols version, string side)
    {
        string first = NewHost();
        string second = NewHost();
        string foreign = $"{Guid.NewGuid():N}.elsewhere.test";
        foreach (string host in new[] { first, second, foreign, first, second, foreign })
        {
            await using Meeting meeting = await Connect(mode, version, side, host).RunAsync();

            meeting.ClientEnding.AssertAccepted(host != foreign);
            Assert.Equal(host != foreign, meeting.ServerEnding.IsGood);
        }
    }

    /// <summary>A peer that was accepted once is not accepted forever.</summary>
    [Theory]
    [MemberData(nameof(Sides))]
    public async Task A_later_connection_may_be_refused(TlsMode mode, SslProtocols version, string side)
    {
        string host = NewHost();
        foreach (bool accepted in new[] { true, true, false, true, false })
        {
            await using Meeting meeting = await Connect(mode, version, side, host, validation: (_, _, _, _) => accepted).RunAsync();

            Assert.Equal(accepted ? "good" : "handshake: AuthenticationException", $"{meeting.ClientEnding}");
        }
    }

    [Theory]
    [MemberData(nameof(Sides))]
    public async Task A_stricter_policy_holds_for_a_host_already_known(TlsMode mode, SslProtocols version, string side)
    {
        string host = $"{Guid.NewGuid():N}.elsewhere.test";
        foreach (bool lax in new[] { true, true, false })
        {
            await using Meeting meeting = await Connect(
                mode,
                version,
                side,
                host,
                client: c => c.CertificateChainPolicy!.VerificationFlags =
                    lax ? X509VerificationFlags.IgnoreInvalidName : X509VerificationFlags.NoFlag).RunAsync();

            Assert.Equal(lax ? "good" : "handshake: AuthenticationException", $"{meeting.ClientEnding}");
        }
    }

    [Theory]
    [MemberData(nameof(Sides))]
    public async Task Clients_of_one_host_are_never_taken_for_each_other(TlsMode mode, SslProtocols version, string side)
    {
        string host = NewHost();
        foreach (string? kind in new[] { "second client", "RSA client", null, "second client", null, "RSA client", "RSA client" })
        {
            Calls calls = new();
            await using Meeting meeting = await Connect(
                mode,
                version,
                side,
                host,
                client: c => c.ClientCertificateContext = kind is null ? null : Certificates.KindContext(kind),
                server: s =>
                {
                    s.ClientCertificateRequired = true;
                    s.RemoteCertificateValidationCallback = (_, certificate, _, errors) =>
                    {
                        calls.Add(certificate, errors);
                        return true;
                    };
                }).SucceedAsync();

            string? subject = kind is null ? null : Certificates.Kind(kind).Subject;
            Assert.Equal(
                [kind is null ? "null | RemoteCertificateNotAvailable" : $"{subject} | None"], calls.List);
            Assert.Equal(subject, meeting.Server.RemoteCertificate?.Subject);
            Assert.Equal(kind is not null, meeting.Server.IsMutuallyAuthenticated);
        }
    }

    [Theory]
    [MemberData(nameof(Sides))]
    public async Task Clients_by_collection_are_never_taken_for_each_other(TlsMode mode, SslProtocols version, string side)
    {
        string host = NewHost();
        foreach (string kind in new[] { "second client", "RSA client", "second client" })
        {
            await using Meeting meeting = await Connect(
                mode,
                version,
                side,
                host,
                client: c => c.ClientCertificates = [Certificates.Kind(kind)],
                server: s => s.ClientCertificateRequired = true).SucceedAsync();

            Assert.Equal(Certificates.Kind(kind).Subject, meeting.Server.RemoteCertificate?.Subject);
        }
    }

    /// <summary>
    /// A session from before the server requested certificates does not belong to an authenticated client.
    /// </summary>
    [Theory]
    [MemberData(nameof(Sides))]
    public async Task A_server_that_begins_to_ask_gets_an_answer(TlsMode mode, SslProtocols version, string side)
    {
        string host = NewHost();
        foreach ((bool asks, bool has) in new[] { (false, false), (false, false), (true, false), (true, true), (true, false) })
        {
            await using Meeting meeting = await Connect(
                mode,
                version,
                side,
                host,
                client: c => c.ClientCertificateContext = has ? Certificates.ClientContext : null,
                server: s => s.ClientCertificateRequired = asks).RunAsync();

            Assert.Equal(asks && !has ? "handshake: AuthenticationException" : "good", $"{meeting.ServerEnding}");
            Assert.Equal(asks && has ? "CN=a client" : null, asks && !has ? null : meeting.Server.RemoteCertificate?.Subject);
        }
    }

    [Theory]
    [MemberData(nameof(Sides))]
    public async Task A_client_accepted_once_may_be_refused_later(TlsMode mode, SslProtocols version, string side)
    {
        string host = NewHost();
        foreach (bool accepted in new[] { true, true, false, true })
        {
            await using Meeting meeting = await Connect(
                mode,
                version,
                side,
                host,
                client: c => c.ClientCertificateContext = Certificates.ClientContext,
                server: s =>
                {
                    s.ClientCertificateRequired = true;
                    s.RemoteCertificateValidationCallback = (_, certificate, _, _) => accepted && certificate is not null;
                }).RunAsync();

            meeting.ServerEnding.AssertAccepted(accepted);
            Assert.Equal(accepted, meeting.ClientEnding.IsGood);
        }
    }

    [Theory]
    [MemberData(nameof(Switches))]
    public async Task Either_side_may_do_without_resumption(TlsMode mode, SslProtocols version, string allowed)
    {
        string host = NewHost();
        int calls = 0;
        for (int i = 0; i < 3; i++)
        {
            await using Meeting meeting = await Connect(
                mode,
                version,
                "both",
                host,
                client: c => c.AllowTlsResume = allowed is "client" or "both",
                server: s => s.AllowTlsResume = allowed is "server" or "both",
                validation: (_, _, _, errors) =>
                {
                    calls++;
                    return errors == SslPolicyErrors.None;
                }).SucceedAsync();
            await ExchangeAsync(meeting);
        }

        Assert.Equal(3, calls);
    }

    [Theory]
    [MemberData(nameof(Sides))]
    public async Task A_server_that_was_restarted_serves_on_also_with_another_certificate(TlsMode mode, SslProtocols version, string side)
    {
        string host = NewHost();
        foreach (string kind in new[] { "wildcard", "wildcard", "good", "good", "RSA 2048", "wildcard" })
        {
            await using Meeting meeting = await Connect(
                mode,
                version,
                side,
                host,
                server: s => s.ServerCertificateContext = Certificates.Context(Certificates.Kind(kind)),
                validation: (_, _, _, _) => true).SucceedAsync();

            Assert.Equal(Certificates.Kind(kind).GetCertHashString(), meeting.Client.RemoteCertificate!.GetCertHashString());
            await ExchangeAsync(meeting);
        }
    }

    [Theory]
    [MemberData(nameof(Sides))]
    public async Task Application_protocols_are_agreed_upon_anew(TlsMode mode, SslProtocols version, string side)
    {
        string host = NewHost();
        foreach (SslApplicationProtocol? protocol in new SslApplicationProtocol?[]
        {
            SslApplicationProtocol.Http2, SslApplicationProtocol.Http11, null, SslApplicationProtocol.Http2,
        })
        {
            await using Meeting meeting = await Connect(
                mode,
                version,
                side,
                host,
                client: c => c.ApplicationProtocols = protocol is { } p ? [p] : null,
                server: s => s.ApplicationProtocols = [SslApplicationProtocol.Http11, SslApplicationProtocol.Http2]).SucceedAsync();

            Assert.Equal(protocol ?? default, meeting.Client.NegotiatedApplicationProtocol);
            Assert.Equal(protocol ?? default, meeting.Server.NegotiatedApplicationProtocol);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_host_may_be_met_with_another_version(TlsMode mode, SslProtocols version)
    {
        string host = NewHost();
        SslProtocols other = version == SslProtocols.Tls12 ? SslProtocols.Tls13 : SslProtocols.Tls12;
        foreach (SslProtocols each in new[] { version, other, version, other })
        {
            await using Meeting meeting = await Connect(mode, each, "both", host).SucceedAsync();

            Assert.Equal(each, meeting.Client.SslProtocol);
            Assert.Equal(each, meeting.Server.SslProtocol);
        }
    }

    [Theory]
    [MemberData(nameof(Sides))]
    public async Task Many_connections_at_once_are_each_judged(TlsMode mode, SslProtocols version, string side)
    {
        string host = NewHost();
        int calls = 0;
        await using (await Connect(mode, version, side, host).SucceedAsync())
        {
            Meeting[] meetings = [.. Enumerable.Range(0, 12).Select(_ => Connect(mode, version, side, host, validation: (_, _, _, errors) =>
            {
                Interlocked.Increment(ref calls);
                return errors == SslPolicyErrors.None;
            }))];
            await Task.WhenAll(meetings.Select(m => m.SucceedAsync()));
            foreach (Meeting meeting in meetings)
            {
                await meeting.DisposeAsync();
            }
        }

        Assert.Equal(12, calls);
    }

    /// <summary>Returns a name that the wildcard certificate covers and no other test uses.</summary>
    private static string NewHost() => $"{Guid.NewGuid():N}.wild.test";

    private static Meeting Connect(
        TlsMode mode,
        SslProtocols version,
        string side,
        string host,
        Action<SslClientAuthenticationOptions>? client = null,
        Action<SslServerAuthenticationOptions>? server = null,
        RemoteCertificateValidationCallback? validation = null) =>
        new(side is "server" ? TlsMode.Stock : mode, side is "client" ? TlsMode.Stock : mode, version)
        {
            ClientOptions = c =>
            {
                c.AllowTlsResume = true;
                c.TargetHost = host;
                c.RemoteCertificateValidationCallback = validation;
                client?.Invoke(c);
            },
            ServerOptions = s =>
            {
                s.ServerCertificateContext = Certificates.KindContext("wildcard");
                server?.Invoke(s);
            },
        };

    /// <summary>Exchanges enough data for the client to receive the server's tickets.</summary>
    private static async Task ExchangeAsync(Meeting meeting)
    {
        foreach ((SslStream from, SslStream to) in new[] { (meeting.Client, meeting.Server), (meeting.Server, meeting.Client) })
        {
            Task sending = Pattern.SendAsync(from, 20_000);
            await Pattern.ReceiveAsync(to, 20_000).InTime();
            await sending.InTime();
        }
    }
}
