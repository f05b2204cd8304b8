using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Compares the validation of the peer's certificate with SslStream: the arguments of the callback, including each
/// element of the chain. The other end is SslStream.
/// </summary>
[Trait("loop", "outer-kernel")]
public class ValidationTests
{
    private const SslPolicyErrors ChainErrors = SslPolicyErrors.RemoteCertificateChainErrors;
    private const SslPolicyErrors NameMismatch = SslPolicyErrors.RemoteCertificateNameMismatch;

    /// <summary>Kinds of certificates with the host that the client requested and the expected errors.</summary>
    private static readonly Dictionary<string, (string Kind, string? Host, SslPolicyErrors Errors)> s_servers = new()
    {
        ["good"] = ("good", "localhost", SslPolicyErrors.None),
        ["good, capitals"] = ("good", "LOCALHOST", SslPolicyErrors.None),
        ["good, RSA"] = ("RSA 2048", "localhost", SslPolicyErrors.None),
        ["chained"] = ("chained", "localhost", SslPolicyErrors.None),
        ["name mismatch"] = ("good", "elsewhere.test", NameMismatch),
        ["no host"] = ("good", "", NameMismatch),
        ["null host"] = ("good", null, NameMismatch),
        ["address"] = ("good", "127.0.0.1", SslPolicyErrors.None),
        ["other address"] = ("good", "127.0.0.2", NameMismatch),
        ["only an address"] = ("for an address", "127.0.0.1", SslPolicyErrors.None),
        ["name where there is only an address"] = ("for an address", "localhost", NameMismatch),
        ["common name only"] = ("without alternative names", "localhost", SslPolicyErrors.None),
        ["wildcard"] = ("wildcard", "a.wild.test", SslPolicyErrors.None),
        ["wildcard, two labels"] = ("wildcard", "a.b.wild.test", NameMismatch),
        ["wildcard, part of a label"] = ("wildcard, part of a label", "foo.wild.test", NameMismatch),
        ["trailing dot"] = ("good", "localhost.", SslPolicyErrors.None),
        ["international"] = ("international", "bücher.test", SslPolicyErrors.None),
        ["international, encoded"] = ("international", "xn--bcher-kva.test", SslPolicyErrors.None),
        ["untrusted root"] = ("untrusted", "localhost", ChainErrors),
        ["self-signed"] = ("self-signed", "localhost", ChainErrors),
        ["expired"] = ("expired", "localhost", ChainErrors),
        ["not yet valid"] = ("not yet valid", "localhost", ChainErrors),
        ["wrong usage"] = ("for clients only", "localhost", ChainErrors),
        ["right usage"] = ("for servers only", "localhost", SslPolicyErrors.None),
        ["any usage"] = ("for any use", "localhost", SslPolicyErrors.None),
        ["expired and another name"] = ("expired", "elsewhere.test", ChainErrors | NameMismatch),
    };

    private static readonly Dictionary<string, SslPolicyErrors> s_clients = new()
    {
        ["second client"] = SslPolicyErrors.None,
        ["chained client"] = SslPolicyErrors.None,
        ["other client"] = ChainErrors,
        ["expired client"] = ChainErrors,
        ["self-signed"] = ChainErrors,
        ["for servers only"] = ChainErrors,
        ["for clients only"] = SslPolicyErrors.None,
        ["RSA client"] = SslPolicyErrors.None,
    };

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols, string> Servers => Modes.AllWith<string>(s_servers.Keys);

    public static TheoryData<TlsMode, SslProtocols, string> Clients => Modes.AllWith<string>(s_clients.Keys);

    [Theory]
    [MemberData(nameof(Servers))]
    public async Task The_callback_is_told_of_a_server_what_SslStream_tells(TlsMode mode, SslProtocols version, string what)
    {
        (string kind, string? host, SslPolicyErrors errors) = s_servers[what];
        foreach (bool systemTrust in new[] { false, true })
        {
            async Task<string> CallAsync(TlsMode each)
            {
                Calls calls = new();
                object? sender = null;
                await using Meeting meeting = await new Meeting(each, TlsMode.Stock, version)
                {
                    ClientOptions = c =>
                    {
                        c.TargetHost = host;
                        c.CertificateChainPolicy = systemTrust ? null : c.CertificateChainPolicy;
                        c.RemoteCertificateValidationCallback = (s, certificate, chain, found) =>
                        {
                            sender = s;
                            calls.Add(certificate, chain, found);
                            return true;
                        };
                    },
                    ServerOptions = s => s.ServerCertificateContext = Certificates.KindContext(kind),
                }.SucceedAsync();
                Assert.Same(meeting.Client, sender);
                return Assert.Single(calls.List);
            }

            string actual = await SideBySide.RunAsync(mode, CallAsync);
            Assert.EndsWith($" | {(systemTrust ? errors | ChainErrors : errors)}", actual, StringComparison.Ordinal);
        }
    }

    [Theory]
    [MemberData(nameof(Clients))]
    public async Task The_callback_is_told_of_a_client_what_SslStream_tells(TlsMode mode, SslProtocols version, string kind)
    {
        async Task<string> CallAsync(TlsMode each)
        {
            Calls calls = new();
            object? sender = null;
            await using Meeting meeting = await new Meeting(TlsMode.Stock, each, version)
            {
                ClientOptions = c => c.ClientCertificateContext = Certificates.KindContext(kind),
                ServerOptions = s =>
                {
                    s.ClientCertificateRequired = true;
                    s.RemoteCertificateValidationCallback = (s, certificate, chain, found) =>
                    {
                        sender = s;
                        calls.Add(certificate, chain, found);
                        return true;
                    };
                },
            }.SucceedAsync();
            Assert.Same(meeting.Server, sender);
            return Assert.Single(calls.List);
        }

        string actual = await SideBySide.RunAsync(mode, CallAsync);
        Assert.EndsWith($" | {s_clients[kind]}", actual, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(Servers))]
    public async Task Without_a_callback_any_error_fails_the_handshake_and_is_named(TlsMode mode, SslProtocols version, string what)
    {
        (string kind, string? host, SslPolicyErrors errors) = s_servers[what];
        Exception? failure = null;
        async Task<string> EndAsync(TlsMode each)
        {
            await using Meeting meeting = await new Meeting(each, TlsMode.Stock, version)
            {
                ClientOptions = c => c.TargetHost = host,
                ServerOptions = s => s.ServerCertificateContext = Certificates.KindContext(kind),
            }.RunAsync();
            meeting.ClientEnding.AssertAccepted(errors == SslPolicyErrors.None);
            Assert.Equal(errors == SslPolicyErrors.None, meeting.ServerEnding.IsGood);

            // The failure of the mode under test takes precedence.
            failure ??= meeting.ClientEnding.Handshake;
            return $"{meeting.ClientEnding}";
        }

        if (await SideBySide.RunAsync(mode, EndAsync) == "good")
        {
            return;
        }

        Exception e = Assert.IsType<AuthenticationException>(failure!.InnerException ?? failure);
        string named = errors != ChainErrors ? $"{errors}" : what switch
        {
            "untrusted root" => nameof(X509ChainStatusFlags.PartialChain),
            "self-signed" => nameof(X509ChainStatusFlags.UntrustedRoot),
            "wrong usage" => nameof(X509ChainStatusFlags.NotValidForUsage),
            _ => nameof(X509ChainStatusFlags.NotTimeValid),
        };
        Assert.Contains(named, e.Message, StringComparison.Ordinal);
    }

    /// <summary>
    /// The failure occurs before a callback: SslStream compares the name with the certificate's and cannot encode it.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_host_that_is_no_name_fails_the_handshake_as_in_SslStream(TlsMode mode, SslProtocols version)
    {
        foreach (string host in new[] { "local..host", "local\u0001host", new string('a', 64) + ".test" })
        {
            string actual = await SideBySide.RunAsync(mode, EndAsync, host);
            Assert.StartsWith(typeof(ArgumentException).FullName!, actual, StringComparison.Ordinal);

            async Task<string> EndAsync(TlsMode each)
            {
                bool called = false;
                await using Meeting meeting = await new Meeting(each, TlsMode.Stock, version)
                {
                    ClientOptions = c => c.TargetHost = host,
                    ClientValidation = (_, _, _, _) => called = true,
                }.RunAsync();
                return $"{meeting.ClientEnding.Handshake?.GetType()}: {meeting.ClientEnding.Handshake?.Message}{(called ? ", called" : "")}";
            }
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task What_a_callback_kept_remains_usable(TlsMode mode, SslProtocols version)
    {
        foreach (bool atServer in new[] { false, true })
        {
            List<X509Certificate2> kept = [];
            X509Certificate? leaf = null;
            RemoteCertificateValidationCallback keep = (_, certificate, chain, _) =>
            {
                leaf = certificate;
                kept.AddRange(chain!.ChainElements.Select(e => e.Certificate));
                kept.AddRange(chain.ChainPolicy.ExtraStore);
                return true;
            };
            Meeting meeting = await new Meeting(atServer ? TlsMode.Stock : mode, atServer ? mode : TlsMode.Stock, version)
            {
                ClientOptions = c => c.ClientCertificateContext = Certificates.KindContext("chained client"),
                ClientValidation = atServer ? null : keep,
                ServerOptions = s =>
                {
                    s.ClientCertificateRequired = true;
                    s.ServerCertificateContext = Certificates.ChainedContext;
                },
                ServerValidation = atServer ? keep : null,
            }.SucceedAsync();
            Assert.Same(leaf, (atServer ? meeting.Server : meeting.Client).RemoteCertificate);
            await meeting.DisposeAsync();

            Assert.True(kept.Count >= 4, $"{kept.Count}");
            foreach (X509Certificate2 certificate in kept.Append((X509Certificate2)leaf!))
            {
                Assert.NotEqual(IntPtr.Zero, certificate.Handle);
                Assert.StartsWith("CN=", certificate.Subject, StringComparison.Ordinal);
                using System.Security.Cryptography.ECDsa? key = certificate.GetECDsaPublicKey();
                Assert.NotNull(key);
            }
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Inside_the_callback_the_stream_tells_as_much_as_SslStream_does(TlsMode mode, SslProtocols version)
    {
        foreach (bool atServer in new[] { false, true })
        {
            async Task<string> LookAsync(TlsMode each)
            {
                string seen = "";
                RemoteCertificateValidationCallback look = (sender, _, _, _) =>
                {
                    SslStream stream = (SslStream)sender;
                    seen = string.Join(
                        ' ',
                        stream.IsServer,
                        stream.TargetHostName,
                        stream.IsAuthenticated,
                        stream.IsMutuallyAuthenticated,
                        stream.CanRead,
                        stream.CheckCertRevocationStatus,
                        Record.Exception(() => _ = stream.RemoteCertificate)?.GetType().Name,
                        Record.Exception(() => _ = stream.LocalCertificate)?.GetType().Name,
                        Record.Exception(() => stream.Write(new byte[1], 0, 1))?.GetType().Name);
                    return true;
                };
                await using Meeting meeting = await new Meeting(atServer ? TlsMode.Stock : each, atServer ? each : TlsMode.Stock, version)
                {
                    ClientOptions = c => c.ClientCertificateContext = Certificates.ClientContext,
                    ClientValidation = atServer ? null : look,
                    ServerOptions = s => s.ClientCertificateRequired = true,
                    ServerValidation = atServer ? look : null,
                }.SucceedAsync();
                return seen;
            }

            string actual = await SideBySide.RunAsync(mode, LookAsync);
            Assert.StartsWith($"{atServer} localhost False False", actual, StringComparison.Ordinal);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Inside_the_callback_the_stream_knows_what_was_negotiated(TlsMode mode, SslProtocols version)
    {
        foreach (bool atServer in new[] { false, true })
        {
            Calls calls = new();
            RemoteCertificateValidationCallback look = (sender, _, _, _) =>
            {
                SslStream stream = (SslStream)sender;
                calls.Add(stream.SslProtocol, stream.NegotiatedCipherSuite, stream.NegotiatedApplicationProtocol);
                return true;
            };
            await using Meeting meeting = await new Meeting(atServer ? TlsMode.Stock : mode, atServer ? mode : TlsMode.Stock, version)
            {
                ClientOptions = c =>
                {
                    c.ClientCertificateContext = Certificates.ClientContext;
                    c.ApplicationProtocols = [SslApplicationProtocol.Http2];
                },
                ClientValidation = atServer ? null : look,
                ServerOptions = s =>
                {
                    s.ClientCertificateRequired = true;
                    s.ApplicationProtocols = [SslApplicationProtocol.Http2];
                },
                ServerValidation = atServer ? look : null,
            }.SucceedAsync();

            Assert.Equal([$"{version} | {meeting.Client.NegotiatedCipherSuite} | h2"], calls.List);
        }
    }
}
