using System.Net.Security;
using System.Reflection;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests that a stapled response still decides where .NET has one of its two ways to attach it to a certificate. That is why a library that
/// finds the older one alone reports no reason.
/// </summary>
/// <remarks>.NET 10 never has the newer one.</remarks>
public class StapleWithoutMemberTests
{
    private const string NewerWay = "SslUpdateOcspStaple";

    public static TheoryData<SslProtocols, bool> Cases => new()
    {
        { SslProtocols.Tls12, false },
        { SslProtocols.Tls12, true },
        { SslProtocols.Tls13, false },
        { SslProtocols.Tls13, true },
    };

    [Theory]
    [MemberData(nameof(Cases))]
    public async Task A_response_decides_without_the_newer_way(SslProtocols version, bool hasCallback)
    {
        Assembly library = HidingContext.Load(typeof(KtlsStream).Assembly.Location, NewerWay);
        foreach (string response in new[] { StaplingServer.Good, StaplingServer.Revoked, StaplingServer.None })
        {
            using StaplingServer server = await StaplingServer.StartAsync(version, response);
            await using SslStream client = await server.ConnectAsync(inner => AlteredStream.Create(library, inner));
            SslClientAuthenticationOptions options = Handshakes.ClientOptions(version);
            options.CertificateChainPolicy = Certificates.Trust();
            options.CertificateChainPolicy.RevocationMode = X509RevocationMode.Offline;
            options.RemoteCertificateValidationCallback = hasCallback ? (_, _, _, errors) => errors == SslPolicyErrors.None : null;

            Exception? failure = await Record.ExceptionAsync(() => AlteredStream.AuthenticateAsync(client, options).InTime("a handshake with s_server"));

            Assert.True(response == StaplingServer.Good == failure is null, $"{response}: {failure}");
            Assert.True(failure is null or AuthenticationException, $"{response}: {failure}");
            if (failure is null)
            {
                Assert.NotEqual(nameof(KtlsDataPath.Managed), AlteredStream.OffloadOf(client, nameof(KtlsOffload.Send)));
            }

            Assert.False(server.IsResponderAsked);
        }
    }
}
