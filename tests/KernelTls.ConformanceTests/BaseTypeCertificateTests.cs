using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests that a local certificate of type X509Certificate with a private key is used as on SslStream.
/// </summary>
public class BaseTypeCertificateTests
{
    public static TheoryData<TlsMode, SslProtocols, string> Ways => Modes.AllWith(
        "server certificate", "server selection", "server stream's selection", "client collection", "client selection", "client stream's selection");

    [Theory]
    [MemberData(nameof(Ways))]
    public async Task A_certificate_of_the_base_type_is_shown_where_it_has_its_key(TlsMode mode, SslProtocols version, string way)
    {
        bool ofServer = way.StartsWith("server", StringComparison.Ordinal);
        string seen = await SideBySide.RunAsync(mode, async each =>
        {
            X509Certificate own = Certificates.BaseTypeWithKey(ofServer ? Certificates.Ecdsa : Certificates.Client);
            await using Meeting meeting = await new Meeting(ofServer ? TlsMode.Stock : each, ofServer ? each : TlsMode.Stock, version)
            {
                ClientOptions = c =>
                {
                    c.ClientCertificates = way == "client collection" ? [own] : null;
                    c.LocalCertificateSelectionCallback = way == "client selection" ? (_, _, _, _, _) => own : null;
                },
                ClientSelection = way == "client stream's selection" ? (_, _, _, _, _) => own : null,
                ServerSelection = way == "server stream's selection" ? (_, _, _, _, _) => own : null,
                ServerOptions = s =>
                {
                    s.ClientCertificateRequired = !ofServer;
                    s.ServerCertificateContext = ofServer ? null : s.ServerCertificateContext;
                    s.ServerCertificate = way is "server certificate" ? own
                        : way == "server stream's selection" ? Certificates.Rsa : null;
                    s.ServerCertificateSelectionCallback = way == "server selection" ? (_, _) => own : null;
                },
                ServerValidation = (_, _, _, _) => true,
            }.RunAsync();
            return $"{(ofServer ? meeting.ServerEnding : meeting.ClientEnding)}: "
                + (ofServer ? meeting.Client.RemoteCertificate : meeting.Server.RemoteCertificate)?.Subject;
        });
        Assert.Equal(ofServer ? "good: CN=localhost" : "good: CN=a client", seen);
    }
}
