using System.Collections;
using System.Net.Security;
using System.Reflection;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests that options are read once when the handshake begins, are never changed, and can be shared by any number of
/// handshakes.
/// </summary>
public class HandshakeStateTests
{
    private const SslProtocols Both = SslProtocols.Tls12 | SslProtocols.Tls13;

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, string> BaseWays => Modes.With(
        "client", "server", "blocking client", "blocking server", "server's options callback");

    /// <summary>The overloads with options are not virtual: in every mode these call the base class's.</summary>
    [Theory]
    [MemberData(nameof(BaseWays))]
    public async Task A_handshake_through_a_variable_of_type_SslStream_works(TlsMode mode, string way)
    {
        await using TlsPair pair = await TlsPair.CreateAsync(mode, mode);
        SslStream client = pair.Client;
        SslStream server = pair.Server;
        SslClientAuthenticationOptions clientOptions = Handshakes.ClientOptions(Both);
        SslServerAuthenticationOptions serverOptions = Handshakes.ServerOptions(Both);
        (Task clientTask, Task serverTask) = way switch
        {
            "client" => (client.AuthenticateAsClientAsync(clientOptions), server.HandshakeAsServerAsync(serverOptions)),
            "server" => (client.HandshakeAsClientAsync(clientOptions), server.AuthenticateAsServerAsync(serverOptions)),
            "blocking client" => (Limits.Blocking(() => client.AuthenticateAsClient(clientOptions)), server.HandshakeAsServerAsync(serverOptions)),
            "blocking server" => (client.HandshakeAsClientAsync(clientOptions), Limits.Blocking(() => server.AuthenticateAsServer(serverOptions))),
            _ => (client.HandshakeAsClientAsync(clientOptions),
                server.AuthenticateAsServerAsync((_, _, _, _) => ValueTask.FromResult(serverOptions), null)),
        };
        await Task.WhenAll(clientTask, serverTask).InTime($"a handshake by {way}");

        SslStream through = way.EndsWith("client", StringComparison.Ordinal) ? client : server;
        Modes.AssertIn(mode, ReferenceEquals(through, client) ? server : client);
        if (through is KtlsStream own)
        {
            Assert.Equal(KtlsOffload.Managed(KtlsFallbackReason.AuthenticatedAsBase), own.Offload);
        }

        Assert.Equal(SslProtocols.Tls13, through.SslProtocol);
        foreach ((SslStream from, SslStream to) in new[] { (client, server), (server, client) })
        {
            Task sending = Pattern.SendAsync(from, 50_000);
            await Pattern.ReceiveAsync(to, 50_000).InTime();
            await sending.InTime();
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_options_are_not_written_to(TlsMode mode, SslProtocols version)
    {
        SslClientAuthenticationOptions client = Handshakes.ClientOptions(version);
        client.ApplicationProtocols = [SslApplicationProtocol.Http2];
        client.ClientCertificates = [Certificates.Client];
        client.RemoteCertificateValidationCallback = (_, _, _, errors) => errors == SslPolicyErrors.None;
        client.CertificateRevocationCheckMode = X509RevocationMode.Offline;
        SslServerAuthenticationOptions server = Handshakes.ServerOptions(version);
        server.ApplicationProtocols = [SslApplicationProtocol.Http11, SslApplicationProtocol.Http2];
        server.ClientCertificateRequired = true;
        server.ServerCertificateContext = null;
        server.ServerCertificate = Certificates.Rsa;
        (string Client, string Server) before = (Describe(client), Describe(server));

        await using Meeting meeting = await new Meeting(mode, mode, version)
        {
            ClientHandshake = s => s.HandshakeAsClientAsync(client),
            ServerHandshake = s => s.HandshakeAsServerAsync(server),
        }.SucceedAsync();

        Assert.Equal(before, (Describe(client), Describe(server)));
        Assert.True(meeting.Server.IsMutuallyAuthenticated);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_s_options_count_as_they_were_at_the_call(TlsMode mode, SslProtocols version)
    {
        bool late = false;
        await using Meeting meeting = await new Meeting(mode, TlsMode.Stock, version)
        {
            ClientHandshake = s =>
            {
                SslClientAuthenticationOptions options = Handshakes.ClientOptions(version);
                options.ApplicationProtocols = [SslApplicationProtocol.Http2];
                options.ClientCertificateContext = Certificates.ClientContext;
                X509ChainPolicy policy = options.CertificateChainPolicy!;
                Task handshake = s.HandshakeAsClientAsync(options);

                options.TargetHost = "elsewhere.test";
                options.ApplicationProtocols = [SslApplicationProtocol.Http11];
                options.EnabledSslProtocols = SslProtocols.None;
                options.ClientCertificateContext = Certificates.KindContext("other client");
                options.CertificateChainPolicy = null;
                options.RemoteCertificateValidationCallback = (_, _, _, _) => late = true;
                policy.CustomTrustStore.Clear();
                policy.CustomTrustStore.Add(Certificates.OtherAuthority);
                return handshake;
            },
            ServerOptions = s =>
            {
                s.ClientCertificateRequired = true;
                s.ApplicationProtocols = [SslApplicationProtocol.Http11, SslApplicationProtocol.Http2];
            },
        }.SucceedAsync();

        Assert.False(late);
        Assert.Equal("localhost", meeting.Client.TargetHostName);
        Assert.Equal(SslApplicationProtocol.Http2, meeting.Client.NegotiatedApplicationProtocol);
        Assert.Equal(Certificates.Client.GetCertHashString(), meeting.Server.RemoteCertificate!.GetCertHashString());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_server_s_options_count_as_they_were_at_the_call(TlsMode mode, SslProtocols version)
    {
        bool late = false;
        TaskCompletionSource changed = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            ClientHandshake = async s =>
            {
                await changed.Task;
                SslClientAuthenticationOptions options = Handshakes.ClientOptions(version);
                options.ApplicationProtocols = [SslApplicationProtocol.Http11, SslApplicationProtocol.Http2];
                options.ClientCertificateContext = Certificates.ClientContext;
                await s.HandshakeAsClientAsync(options);
            },
            ServerHandshake = s =>
            {
                SslServerAuthenticationOptions options = Handshakes.ServerOptions(version);
                options.ApplicationProtocols = [SslApplicationProtocol.Http2];
                options.ClientCertificateRequired = true;
                X509ChainPolicy policy = options.CertificateChainPolicy!;
                Task handshake = s.HandshakeAsServerAsync(options);

                options.ApplicationProtocols = [SslApplicationProtocol.Http11];
                options.ClientCertificateRequired = false;
                options.EnabledSslProtocols = SslProtocols.None;
                options.ServerCertificateContext = Certificates.KindContext("untrusted");
                options.CertificateChainPolicy = null;
                options.RemoteCertificateValidationCallback = (_, _, _, _) => late = true;
                policy.CustomTrustStore.Clear();
                policy.CustomTrustStore.Add(Certificates.OtherAuthority);
                changed.SetResult();
                return handshake;
            },
        }.SucceedAsync();

        Assert.False(late);
        Assert.Equal(SslApplicationProtocol.Http2, meeting.Server.NegotiatedApplicationProtocol);
        Assert.Equal(Certificates.Client.GetCertHashString(), meeting.Server.RemoteCertificate!.GetCertHashString());
        Assert.Equal(Certificates.Ecdsa.GetCertHashString(), meeting.Client.RemoteCertificate!.GetCertHashString());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task One_options_object_serves_twenty_handshakes_at_once(TlsMode mode, SslProtocols version)
    {
        int judged = 0;
        SslClientAuthenticationOptions client = Handshakes.ClientOptions(version);
        client.ClientCertificates = [Certificates.Client];
        client.RemoteCertificateValidationCallback = (_, _, _, errors) => errors == SslPolicyErrors.None && Interlocked.Increment(ref judged) > 0;
        SslServerAuthenticationOptions server = Handshakes.ServerOptions(version);
        server.ClientCertificateRequired = true;
        server.RemoteCertificateValidationCallback = (_, _, _, errors) => errors == SslPolicyErrors.None && Interlocked.Increment(ref judged) > 0;
        server.ServerCertificateContext = null;
        server.ServerCertificateSelectionCallback = (_, _) => Certificates.Ecdsa;
        Meeting[] meetings = [.. Enumerable.Range(0, 20).Select(_ => new Meeting(mode, mode, version)
        {
            ClientHandshake = s => s.HandshakeAsClientAsync(client),
            ServerHandshake = s => s.HandshakeAsServerAsync(server),
        })];

        await Task.WhenAll(meetings.Select(m => m.SucceedAsync()));

        Assert.Equal(40, judged);
        foreach (Meeting meeting in meetings)
        {
            Assert.True(meeting.Server.IsMutuallyAuthenticated);
            await meeting.DisposeAsync();
        }
    }

    /// <summary>Returns every public property, including the contents of lists and policies.</summary>
    private static string Describe(object options) => string.Join('\n', options.GetType()
        .GetProperties(BindingFlags.Public | BindingFlags.Instance)
        .Where(p => p.GetIndexParameters().Length == 0)
        .Select(p => $"{p.Name}: {Value(p.GetValue(options))}"));

    private static string Value(object? value) => value switch
    {
        X509ChainPolicy policy => $"{System.Runtime.CompilerServices.RuntimeHelpers.GetHashCode(policy)} "
            + $"{policy.ApplicationPolicy.Count} {policy.ExtraStore.Count} {policy.CustomTrustStore.Count} {policy.RevocationMode} {policy.VerificationFlags}",
        X509CertificateCollection certificates => $"{certificates.Count} {System.Runtime.CompilerServices.RuntimeHelpers.GetHashCode(certificates)}",
        IEnumerable list and not string => string.Join(' ', list.Cast<object>()),
        _ => $"{value}",
    };
}
