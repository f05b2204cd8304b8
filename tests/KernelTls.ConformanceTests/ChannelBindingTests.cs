using System.Net.Security;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using System.Security.Authentication.ExtendedProtection;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests the channel bindings of RFC 5929: tls-unique and tls-server-end-point.</summary>
public class ChannelBindingTests
{
    /// <summary>
    /// The size of SEC_CHANNEL_BINDINGS: eight 32-bit words. The last two are the length and offset of the data that
    /// follows.
    /// </summary>
    private const int HeaderSize = 32;

    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols, string> ServerKinds => Modes.AllWith(
        "good", "RSA 2048", "signed with SHA-384", "signed with SHA-512");

    public static TheoryData<TlsMode, SslProtocols, ChannelBindingKind> Kinds => Modes.AllWith(
        ChannelBindingKind.Unique, ChannelBindingKind.Endpoint, ChannelBindingKind.Unknown);

    /// <summary>
    /// Compares the shape at either end, with and without a client certificate. The content differs between
    /// connections.
    /// </summary>
    [Theory]
    [MemberData(nameof(Kinds))]
    public async Task A_binding_has_the_shape_it_has_on_SslStream(TlsMode mode, SslProtocols version, ChannelBindingKind kind)
    {
        foreach (bool mutual in new[] { false, true })
        {
            async Task<(string Client, string Server)> ShapesAsync(TlsMode each)
            {
                await using Meeting meeting = await new Meeting(each, each, version)
                {
                    ClientOptions = c => c.ClientCertificateContext = mutual ? Certificates.ClientContext : null,
                    ServerOptions = s => s.ClientCertificateRequired = mutual,
                }.SucceedAsync();
                return (Shape(meeting.Client, kind), Shape(meeting.Server, kind));
            }

            (string Client, string Server) actual = await ShapesAsync(mode);

            (string client, string server) = await ShapesAsync(TlsMode.Stock);

            // SslStream uses the peer's certificate at both ends. The server's is correct (RFC 5929, section 4.1).
            bool corrected = kind == ChannelBindingKind.Endpoint && Modes.OnOpenSsl.Contains(mode);
            Assert.Equal((client, corrected ? client : server), actual);
            Assert.Equal(kind == ChannelBindingKind.Unknown ? "null" : Prefix(kind), actual.Client.Split(' ')[0]);
        }
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task Tls_unique_is_the_same_at_both_ends_and_different_on_each_connection(TlsMode mode)
    {
        HashSet<string> seen = [];
        foreach ((TlsMode client, TlsMode server) in new[] { (mode, TlsMode.Stock), (TlsMode.Stock, mode), (mode, mode), (mode, mode) })
        {
            foreach (bool mutual in new[] { false, true })
            {
                await using Meeting meeting = await new Meeting(client, server, SslProtocols.Tls12)
                {
                    ClientOptions = c => c.ClientCertificateContext = mutual ? Certificates.ClientContext : null,
                    ServerOptions = s => s.ClientCertificateRequired = mutual,
                }.SucceedAsync();
                byte[] atClient = Bytes(meeting.Client, ChannelBindingKind.Unique)!;
                byte[] atServer = Bytes(meeting.Server, ChannelBindingKind.Unique)!;

                Assert.Equal(atServer, atClient);
                Assert.StartsWith("tls-unique:", Encoding.ASCII.GetString(atClient.AsSpan(HeaderSize)), StringComparison.Ordinal);
                Assert.Equal(HeaderSize + "tls-unique:".Length + 12, atClient.Length);
                Assert.True(seen.Add(Convert.ToHexString(atClient)));
            }
        }
    }

    /// <summary>On the server too, SslStream calculates it from the peer's certificate.</summary>
    [Theory]
    [MemberData(nameof(ServerKinds))]
    public async Task The_endpoint_is_the_hash_of_the_peer_s_certificate(TlsMode mode, SslProtocols version, string kind)
    {
        foreach (bool atServer in new[] { false, true })
        {
            await using Meeting meeting = await new Meeting(atServer ? TlsMode.Stock : mode, atServer ? mode : TlsMode.Stock, version)
            {
                ClientOptions = c => c.ClientCertificateContext = Certificates.KindContext(kind),
                ServerOptions = s =>
                {
                    s.ServerCertificateContext = Certificates.KindContext(kind);
                    s.ClientCertificateRequired = true;
                },
            }.SucceedAsync();
            byte[] binding = Bytes(atServer ? meeting.Server : meeting.Client, ChannelBindingKind.Endpoint)!;

            HashAlgorithmName hash = kind switch
            {
                "signed with SHA-384" => HashAlgorithmName.SHA384,
                "signed with SHA-512" => HashAlgorithmName.SHA512,
                _ => HashAlgorithmName.SHA256,
            };
            byte[] expected = [.. "tls-server-end-point:"u8, .. Certificates.Kind(kind).GetCertHash(hash)];
            Assert.Equal(expected, binding[HeaderSize..]);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_binding_says_where_its_data_is_and_outlives_the_stream(TlsMode mode, SslProtocols version)
    {
        ChannelBinding binding;
        await using (Meeting meeting = await new Meeting(mode, TlsMode.Stock, version).SucceedAsync())
        {
            binding = meeting.Client.ContextOf().GetChannelBinding(ChannelBindingKind.Endpoint)!;
        }

        using (binding)
        {
            Assert.False(binding.IsInvalid);
            byte[] bytes = Bytes(binding);
            Assert.Equal(bytes.Length - HeaderSize, BitConverter.ToInt32(bytes, 24));
            Assert.Equal(HeaderSize, BitConverter.ToInt32(bytes, 28));
            Assert.All(bytes[..24], b => Assert.Equal(0, b));
        }
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task Before_the_handshake_there_is_no_binding(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.CreateAsync(mode, mode);

        foreach (SslStream stream in new[] { pair.Client, pair.Server })
        {
            Assert.NotNull(stream.ContextOf());
            Assert.Null(stream.ContextOf().GetChannelBinding(ChannelBindingKind.Unique));
            Assert.Null(stream.ContextOf().GetChannelBinding(ChannelBindingKind.Endpoint));
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_context_taken_before_the_handshake_is_good_afterwards(TlsMode mode, SslProtocols version)
    {
        System.Net.TransportContext? early = null;
        await using Meeting meeting = await new Meeting(mode, TlsMode.Stock, version)
        {
            ClientHandshake = s =>
            {
                early = s.ContextOf();
                return s.HandshakeAsClientAsync(Handshakes.ClientOptions(version));
            },
        }.SucceedAsync();

        using ChannelBinding? binding = early!.GetChannelBinding(ChannelBindingKind.Endpoint);
        Assert.Equal(Bytes(meeting.Client, ChannelBindingKind.Endpoint), Bytes(binding!));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Each_call_gives_a_binding_of_its_own(TlsMode mode, SslProtocols version)
    {
        await using Meeting meeting = await new Meeting(mode, TlsMode.Stock, version).SucceedAsync();
        foreach (ChannelBindingKind kind in new[] { ChannelBindingKind.Unique, ChannelBindingKind.Endpoint })
        {
            ChannelBinding first = meeting.Client.ContextOf().GetChannelBinding(kind)!;
            byte[] bytes = Bytes(first);
            first.Dispose();

            Assert.Equal(bytes, Bytes(meeting.Client, kind));
        }
    }

    private static string Prefix(ChannelBindingKind kind) => kind == ChannelBindingKind.Unique ? "tls-unique:" : "tls-server-end-point:";

    /// <summary>Returns the header, prefix and length, or how the call fails.</summary>
    private static string Shape(SslStream stream, ChannelBindingKind kind)
    {
        try
        {
            byte[]? bytes = Bytes(stream, kind);
            if (bytes is null)
            {
                return "null";
            }

            string text = Encoding.Latin1.GetString(bytes, HeaderSize, bytes.Length - HeaderSize);
            return $"{text[..(text.IndexOf(':', StringComparison.Ordinal) + 1)]} {Convert.ToHexString(bytes, 0, HeaderSize)} {bytes.Length}";
        }
        catch (Exception e) when (e is not Xunit.Sdk.XunitException)
        {
            // The exception type that SslStream throws is internal.
            return "fails";
        }
    }

    private static byte[]? Bytes(SslStream stream, ChannelBindingKind kind)
    {
        using ChannelBinding? binding = stream.ContextOf().GetChannelBinding(kind);
        return binding is null ? null : Bytes(binding);
    }

    private static byte[] Bytes(ChannelBinding binding)
    {
        byte[] bytes = new byte[binding.Size];
        Marshal.Copy(binding.DangerousGetHandle(), bytes, 0, bytes.Length);
        return bytes;
    }
}
