using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Runs openssl s_server with a certificate of <see cref="OcspResponder.MakeCertificate(int)"/> and a stapled response
/// of <c>openssl ocsp</c> about it. Nothing answers at the address that the certificate names.
/// </summary>
internal sealed class StaplingServer : IDisposable
{
    /// <summary>The response that s_server staples, or none.</summary>
    public const string Good = "good";
    public const string Revoked = "revoked";
    public const string None = "none";

    private readonly TemporaryDirectory _directory = new();
    private readonly TcpListener _responder = new(IPAddress.Loopback, 0);
    private readonly X509Certificate2 _certificate;
    private ExternalProgram? _program;
    private int _port;

    private StaplingServer()
    {
        _responder.Start();
        _certificate = OcspResponder.MakeCertificate(((IPEndPoint)_responder.LocalEndpoint).Port);
    }

    /// <summary>Gets a value that indicates whether a client has connected to the address in the certificate.</summary>
    public bool IsResponderAsked => _responder.Pending();

    public static async Task<StaplingServer> StartAsync(SslProtocols version, string response)
    {
        StaplingServer server = new();
        try
        {
            string[] staple = response == None ? [] : ["-status_file", await server.WriteResponseAsync(response)];
            (server._program, server._port) = await OpenSslProgram.ServeStatusAsync(server._certificate, server._directory, version, staple);
            return server;
        }
        catch
        {
            server.Dispose();
            throw;
        }
    }

    /// <summary>Returns a connection whose client is in the mode. It has not begun its handshake.</summary>
    public Task<SslStream> ConnectAsync(TlsMode mode, Action<KtlsOptions>? tune = null) =>
        ConnectAsync(inner => Modes.Create(mode, inner, tune: tune));

    /// <summary>Returns a connection over what <paramref name="create"/> makes of its socket's stream.</summary>
    public async Task<SslStream> ConnectAsync(Func<NetworkStream, SslStream> create)
    {
        Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        await socket.ConnectAsync(IPAddress.Loopback, _port).InTime("a connection to s_server");
        return create(new NetworkStream(socket, ownsSocket: true));
    }

    /// <summary>Requests s_server's page about the connection, reads it to its end, and returns whether a session was resumed.</summary>
    public static async Task<bool> IsResumedAsync(SslStream client)
    {
        await client.WriteAsync("GET / HTTP/1.0\r\n\r\n"u8.ToArray()).InTime("a request");
        using StreamReader reader = new(client, Encoding.ASCII);
        string page = await reader.ReadToEndAsync().InTime("the page of s_server");
        Assert.Contains("200 ok", page, StringComparison.Ordinal);
        return page.Contains("Reused, TLS", StringComparison.Ordinal);
    }

    public void Dispose()
    {
        _program?.Dispose();
        _responder.Dispose();
        _certificate.Dispose();
        _directory.Dispose();
    }

    /// <summary>Writes the authority's response and returns its path.</summary>
    private async Task<string> WriteResponseAsync(string response)
    {
        string authorityFolder = Directory.CreateDirectory(_directory["authority"]).FullName;
        (string authority, string key) = Certificates.WritePem(Certificates.Authority, authorityFolder);
        (string leaf, _) = Certificates.WritePem(_certificate, _directory.FullName);

        // Status, expiry, revocation, serial number, file, subject.
        string index = response == Good ? "V\t491231235959Z\t" : "R\t491231235959Z\t250101000000Z";
        await File.WriteAllTextAsync(_directory["index"], $"{index}\t{OcspResponder.Serial}\tunknown\t/CN=localhost\n");
        using ExternalProgram ocsp = ExternalProgram.Start(
            "openssl",
            _directory.FullName,
            "ocsp", "-index", _directory["index"], "-CA", authority, "-rsigner", authority, "-rkey", key, "-issuer", authority, "-cert", leaf,
            "-respout", _directory["response"], "-ndays", "2", "-noverify");
        await ocsp.SucceedAsync();
        return _directory["response"];
    }
}
