using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Server.Kestrel.Https;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Compares what an application on Kestrel sees with what the stock server shows: every member of every public feature of
/// connection and request, HttpContext.Connection, and the log of the connection.
/// </summary>
[Trait("loop", "outer-kernel")]
public class KestrelSurfaceTests(ITestOutputHelper output)
{
    private static readonly SslProtocols[] s_versions = [SslProtocols.Tls12, SslProtocols.Tls13];
    private static readonly bool[] s_either = [false, true];

    public static TheoryData<TlsMode> Costly => [.. Modes.Costly];

    [Theory]
    [MemberData(nameof(Costly))]
    public Task An_application_sees_what_the_stock_server_shows(TlsMode mode) => SurfaceRun.CompareAsync(
        output,
        SurfaceDifferences.Kestrel,
        mode,
        [.. from version in s_versions from isHttp2 in s_either from each in Cases(version, isHttp2) select each],
        static (each, engine) => each.RunAsync(engine));

    private static IEnumerable<KestrelCase> Cases(SslProtocols version, bool isHttp2)
    {
        yield return new("plain", version, isHttp2);
        yield return new("client certificate", version, isHttp2)
        {
            Https = https => https.ClientCertificateMode = ClientCertificateMode.RequireCertificate,
            Client = client => client.ClientCertificateContext = Certificates.ClientContext,
        };
        if (isHttp2)
        {
            yield break;
        }

        yield return new("server certificate selected", version, isHttp2)
        {
            Https = https => (https.ServerCertificate, https.ServerCertificateSelector) = (null, (_, _) => Certificates.Ecdsa),
        };
        yield return new("client certificate, allowed and not sent", version, isHttp2)
        {
            Https = https => https.ClientCertificateMode = ClientCertificateMode.AllowCertificate,
        };
        yield return new("refused: no client certificate", version, isHttp2)
        {
            Https = https => https.ClientCertificateMode = ClientCertificateMode.RequireCertificate,
        };
        yield return new("refused: the client's authority", version, isHttp2)
        {
            Https = https => https.ClientCertificateMode = ClientCertificateMode.RequireCertificate,
            Client = client => client.ClientCertificateContext = Certificates.KindContext("other client"),
        };
        yield return new("refused by the validation", version, isHttp2)
        {
            Https = https => (https.ClientCertificateMode, https.ClientCertificateValidation) =
                (ClientCertificateMode.RequireCertificate, (_, _, _) => false),
            Client = client => client.ClientCertificateContext = Certificates.ClientContext,
        };
        yield return new("refused by the client", version, isHttp2) { Client = client => client.CertificateChainPolicy!.CustomTrustStore.Clear() };
        yield return new("no version in common", version, isHttp2)
        {
            Https = https => https.SslProtocols = version == SslProtocols.Tls12 ? SslProtocols.Tls13 : SslProtocols.Tls12,
        };
        yield return new("a client that sends text", version, isHttp2)
        {
            RawClient = async socket =>
            {
                await socket.SendAsync("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"u8.ToArray());
                socket.Shutdown(SocketShutdown.Send);
            },
        };
        yield return new("a client that ends", version, isHttp2) { RawClient = socket => Do(() => socket.Shutdown(SocketShutdown.Send)) };
        yield return new("a client that resets", version, isHttp2) { RawClient = socket => Do(() => socket.Close(0)) };
        yield return new("a client that says nothing", version, isHttp2)
        {
            Https = https => https.HandshakeTimeout = TimeSpan.FromMilliseconds(Cell.IsLab ? 1000 : 200),
            RawClient = async socket => Assert.True(await ReceiveAsync(socket) <= 0),
        };
    }

    private static async Task<int> ReceiveAsync(Socket socket)
    {
        try
        {
            return await socket.ReceiveAsync(new byte[1]);
        }
        catch (SocketException)
        {
            return -1;
        }
    }

    private static Task Do(Action work)
    {
        work();
        return Task.CompletedTask;
    }
}
