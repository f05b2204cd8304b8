using System.Net;
using System.Net.Security;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using System.Security.Authentication.ExtendedProtection;
using System.Security.Cryptography;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests the members that a subclass cannot override through a variable of type SslStream, as HttpClient and applications read
/// them: they are those of SslStream before, during and after the handshake, and of a stream that is disposed.
/// </summary>
public class BaseMemberTests
{
    private static readonly string s_serverHash = Convert.ToHexString(Certificates.Ecdsa.GetCertHash(HashAlgorithmName.SHA256));

    public static TheoryData<TlsMode, SslProtocols, bool> Outcomes => Modes.AllWith(true, false);

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols> OnOpenSsl => Modes.AllOnOpenSsl;

    [Theory]
    [MemberData(nameof(Outcomes))]
    public async Task A_client_s_members_are_those_of_SslStream_at_each_moment(TlsMode mode, SslProtocols version, bool accepts)
    {
        async Task<string> DescribeAsync(TlsMode each)
        {
            List<string> moments = [];
            SslStream? client = null;
            TransportContext? early = null;
            Meeting meeting = await new Meeting(each, TlsMode.Stock, version)
            {
                ClientOptions = c => c.ApplicationProtocols = [SslApplicationProtocol.Http11],
                ServerOptions = s => s.ApplicationProtocols = [SslApplicationProtocol.Http11],
                ClientHandshake = async s =>
                {
                    client = s;
                    early = s.TransportContext;
                    Add("before");
                    SslClientAuthenticationOptions options = Handshakes.ClientOptions(version);
                    options.ApplicationProtocols = [SslApplicationProtocol.Http11];
                    await s.HandshakeAsClientAsync(options);
                },
                ClientSelection = (_, _, _, _, _) =>
                {
                    Add("selecting");
                    return null!;
                },
                ClientValidation = (_, _, _, _) =>
                {
                    Add("validating");
                    return accepts;
                },
            }.RunAsync();
            Assert.Equal(accepts, meeting.ClientEnding.IsGood);
            Add("after");
            moments.Add($"the early context: {Endpoint(early!)}");
            await meeting.DisposeAsync();
            Add("disposed");
            return string.Join('\n', moments);

            void Add(string moment) => moments.Add(
                $"{moment}: {Outcome(() => client!.TargetHostName)}, {Outcome(() => client!.NegotiatedApplicationProtocol)}, "
                + $"{Endpoint(client!.TransportContext)}, {Outcome(() => client!.TransportContext.GetChannelBinding(ChannelBindingKind.Unknown))}");
        }

        string described = await SideBySide.RunAsync(mode, DescribeAsync);
        Assert.Equal(accepts, described.Contains($"after: localhost, http/1.1, tls-server-end-point:{s_serverHash}, null", StringComparison.Ordinal));
    }

    /// <summary>A server on OpenSSL is bound by its own certificate, and SslStream by the client's (docs/differences.md).</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_server_s_binding_is_that_of_its_own_certificate(TlsMode mode, SslProtocols version)
    {
        foreach (bool mutual in new[] { false, true })
        {
            await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
            {
                ClientOptions = c => c.ClientCertificateContext = mutual ? Certificates.ClientContext : null,
                ServerOptions = s => s.ClientCertificateRequired = mutual,
            }.SucceedAsync();

            Assert.Equal(Endpoint(meeting.Client.TransportContext), Endpoint(meeting.Server.TransportContext));
            Assert.Equal($"tls-server-end-point:{s_serverHash}", Endpoint(meeting.Server.TransportContext));
        }
    }

    /// <summary>It must not be taken for a connection that has none.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Tls_unique_fails_and_is_not_missing(TlsMode mode, SslProtocols version)
    {
        await using Meeting meeting = await new Meeting(mode, mode, version).SucceedAsync();

        foreach (SslStream stream in new[] { meeting.Client, meeting.Server })
        {
            Assert.ThrowsAny<Exception>(() => stream.TransportContext.GetChannelBinding(ChannelBindingKind.Unique));
            Assert.NotNull(stream.ContextOf().GetChannelBinding(ChannelBindingKind.Unique));
        }
    }

    /// <summary>Connections with the same certificate share what the binding is calculated from.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Each_connection_has_the_binding_of_its_certificate(TlsMode mode, SslProtocols version)
    {
        string[] kinds = ["good", "RSA 2048", "signed with SHA-384", "signed with SHA-512", "wildcard"];
        List<(Meeting Meeting, string Kind)> all = [];
        foreach (string kind in kinds.Concat(kinds))
        {
            all.Add((await new Meeting(mode, mode, version)
            {
                ServerOptions = s => s.ServerCertificateContext = Certificates.KindContext(kind),
                ClientValidation = (_, _, _, _) => true,
            }.SucceedAsync(), kind));
        }

        foreach ((Meeting meeting, string kind) in all)
        {
            HashAlgorithmName hash = kind.EndsWith("384", StringComparison.Ordinal) ? HashAlgorithmName.SHA384
                : kind.EndsWith("512", StringComparison.Ordinal) ? HashAlgorithmName.SHA512
                : HashAlgorithmName.SHA256;
            string expected = $"tls-server-end-point:{Convert.ToHexString(Certificates.Kind(kind).GetCertHash(hash))}";
            Assert.Equal(expected, Endpoint(meeting.Client.TransportContext));
            Assert.Equal(expected, Endpoint(meeting.Server.TransportContext));
            await meeting.DisposeAsync();
        }
    }

    /// <summary>A second handshake in the midst of a connection would garble it.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_second_handshake_is_refused_and_sends_nothing(TlsMode mode, SslProtocols version)
    {
        List<string> during = [];
        await using Meeting meeting = await new Meeting(mode, mode, version)
        {
            ClientValidation = (sender, _, _, _) =>
            {
                during.Add(AgainAsync((SslStream)sender, isServer: false).GetAwaiter().GetResult());
                return true;
            },
            ServerValidation = (sender, _, _, _) =>
            {
                during.Add(AgainAsync((SslStream)sender, isServer: true).GetAwaiter().GetResult());
                return true;
            },
        }.SucceedAsync();
        Assert.Equal(["InvalidOperationException", "InvalidOperationException"], during);

        foreach (bool isServer in new[] { false, true })
        {
            SslStream stream = isServer ? meeting.Server : meeting.Client;
            Assert.Equal("InvalidOperationException", await AgainAsync(stream, isServer));
            Assert.Throws<InvalidOperationException>(() =>
            {
                if (isServer)
                {
                    stream.AuthenticateAsServer(Handshakes.ServerOptions(SslProtocols.None));
                }
                else
                {
                    stream.AuthenticateAsClient(Handshakes.ClientOptions(SslProtocols.None));
                }
            });
            await Assert.ThrowsAsync<InvalidOperationException>(() => stream.AuthenticateAsServerAsync(
                (_, _, _, _) => ValueTask.FromResult(Handshakes.ServerOptions(SslProtocols.None)), null).InTime("the refusal"));
        }

        foreach ((SslStream from, SslStream to) in new[] { (meeting.Client, meeting.Server), (meeting.Server, meeting.Client) })
        {
            byte[] received = new byte[3];
            await from.WriteAsync(new byte[] { 1, 2, 3 }).InTime("a write after it");
            await to.ReadExactlyAsync(received).InTime("a read after it");
            Assert.Equal([1, 2, 3], received);
        }

        await meeting.DisposeAsync();
        Assert.Equal("ObjectDisposedException", await AgainAsync(meeting.Client, isServer: false));
        Assert.Equal("ObjectDisposedException", await AgainAsync(meeting.Server, isServer: true));
    }

    /// <summary>While the base class performs one, this library starts none.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_handshake_beside_one_of_the_base_class_is_refused(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.CreateAsync(mode, TlsMode.Stock);
        SslStream client = pair.Client;
        Task first = client.AuthenticateAsClientAsync(Handshakes.ClientOptions(version), TestContext.Current.CancellationToken);

        await Assert.ThrowsAsync<InvalidOperationException>(
            () => client.HandshakeAsClientAsync(Handshakes.ClientOptions(version)).InTime("the refusal"));
        await pair.Server.AuthenticateAsServerAsync(Handshakes.ServerOptions(version), TestContext.Current.CancellationToken).InTime("the server");
        await first.InTime("the first handshake");
        Assert.True(client.IsAuthenticated);
    }

    private static async Task<string> AgainAsync(SslStream stream, bool isServer)
    {
        try
        {
            await (isServer
                ? stream.AuthenticateAsServerAsync(Handshakes.ServerOptions(SslProtocols.None))
                : stream.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.None))).InTime("the refusal");
            return "none";
        }
        catch (Exception e) when (e is not Xunit.Sdk.XunitException)
        {
            return e.GetType().Name;
        }
    }

    private static string Endpoint(TransportContext context) => Outcome(() =>
    {
        using ChannelBinding? binding = context.GetChannelBinding(ChannelBindingKind.Endpoint);
        if (binding is null)
        {
            return null;
        }

        byte[] bytes = new byte[binding.Size];
        Marshal.Copy(binding.DangerousGetHandle(), bytes, 0, bytes.Length);
        int data = Array.IndexOf(bytes, (byte)':') + 1;
        return $"{Encoding.ASCII.GetString(bytes, 32, data - 32)}{Convert.ToHexString(bytes, data, bytes.Length - data)}";
    });

    private static string Outcome(Func<object?> read)
    {
        try
        {
            return $"{read() ?? "null"}";
        }
        catch (Exception e) when (e is not Xunit.Sdk.XunitException)
        {
            return e.GetType().Name;
        }
    }
}
