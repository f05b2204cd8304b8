using System.Buffers.Binary;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Implements the start of PostgreSQL's protocol: it accepts TLS, performs the handshake with a stock SslStream, and refuses the user
/// (https://www.postgresql.org/docs/current/protocol-message-formats.html).
/// </summary>
internal sealed class FakePostgres : IDisposable
{
    public const string Refusal = "nobody may come in";

    private readonly TcpListener _listener = new(IPAddress.Loopback, 0);

    public FakePostgres() => _listener.Start();

    public string Port => $"{((IPEndPoint)_listener.LocalEndpoint).Port}";

    public void Dispose() => _listener.Dispose();

    /// <summary>Serves one client.</summary>
    public async Task ServeAsync()
    {
        using TcpClient connection = await _listener.AcceptTcpClientAsync().InTime("the client to connect");
        NetworkStream plain = connection.GetStream();
        await plain.ReadExactlyAsync(new byte[8]).InTime("the SSLRequest");
        await plain.WriteAsync("S"u8.ToArray()).InTime("the answer to it");
        await using SslStream tls = new(plain);
        await tls.AuthenticateAsServerAsync(new SslServerAuthenticationOptions { ServerCertificateContext = Certificates.EcdsaContext })
            .InTime("the handshake");
        byte[] length = new byte[4];
        await tls.ReadExactlyAsync(length).InTime("the StartupMessage");
        await tls.ReadExactlyAsync(new byte[BinaryPrimitives.ReadInt32BigEndian(length) - length.Length]).InTime("the rest of it");

        byte[] fields = [.. "SFATAL\0VFATAL\0C28000\0M"u8, .. System.Text.Encoding.ASCII.GetBytes(Refusal), 0, 0];
        BinaryPrimitives.WriteInt32BigEndian(length, length.Length + fields.Length);
        await tls.WriteAsync((byte[])[(byte)'E', .. length, .. fields]).InTime("the ErrorResponse");
        await tls.ShutdownAsync().InTime("the close_notify");
    }
}
