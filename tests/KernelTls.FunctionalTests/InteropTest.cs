using System.Net.Security;
using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// The base class of tests with third-party peers and this end in the kernel. The peers use TLS in user space unless a
/// test says otherwise, so the kernel's counters are those of this end.
/// </summary>
public abstract class InteropTest : KernelTest
{
    public static TheoryData<SslProtocols, string> VersionsAndKeys => new()
    {
        { SslProtocols.Tls12, "RSA" },
        { SslProtocols.Tls12, "ECDSA" },
        { SslProtocols.Tls13, "RSA" },
        { SslProtocols.Tls13, "ECDSA" },
    };

    /// <summary>Returns localhost's certificate with such a key.</summary>
    internal static SslStreamCertificateContext CertificateOf(string key) =>
        key == "RSA" ? Certificates.RsaContext : Certificates.EcdsaContext;

    internal static Task<KtlsStream> AcceptAsync(
        ForeignPeer listener, SslProtocols version, Action<SslServerAuthenticationOptions>? configure = null) =>
        listener.AcceptAsync(TlsMode.Kernel, version, configure);

    internal static Task<KtlsStream> ConnectAsync(
        int port, SslProtocols version, Action<SslClientAuthenticationOptions>? configure = null) =>
        ForeignPeer.ConnectAsync(port, TlsMode.Kernel, version, configure);

    /// <summary>
    /// Returns the failure when a server requires a certificate and this end has none. A TLS 1.3 client detects it when
    /// it reads, because its handshake completes before the server's. By then the server may have closed already, and
    /// the kernel takes no keys on such a socket.
    /// </summary>
    internal static Task<Exception> RefusalWithoutCertificateAsync(int port, SslProtocols version) =>
        Assert.ThrowsAnyAsync<Exception>(async () =>
        {
            await using KtlsStream client = await ForeignPeer.OpenAsync(port, TlsMode.Kernel);
            await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(version)).InTime("our end of the handshake");
            Assert.Equal(SslProtocols.Tls13, client.SslProtocol);
            Assert.False(client.IsMutuallyAuthenticated);
            await client.ReadAsync(new byte[1]).InTime("the alert");
        });

    /// <summary>Asserts that the kernel took keys for this many connections of this end, and for no others.</summary>
    internal static void AssertCounted(TlsStatistics before, SslProtocols version, int connections = 1)
    {
        TlsStatistics now = TlsStatistics.Read();
        Assert.Equal(connections, now.SendSoftware - before.SendSoftware);
        Assert.Equal(connections * ReceivingEnds(version) / 2, now.ReceiveSoftware - before.ReceiveSoftware);
    }

    /// <summary>Exchanges a line from the program and one to it.</summary>
    internal static async Task GreetAsync(ExternalProgram program, Stream stream)
    {
        await program.Input.WriteAsync("hello\n"u8.ToArray());
        await program.Input.FlushAsync();
        byte[] line = new byte[6];
        await stream.ReadExactlyAsync(line).InTime($"a line from the program, which says: {program.Errors}");
        Assert.Equal("hello\n"u8.ToArray(), line);
        await stream.WriteAsync("world\n"u8.ToArray()).InTime("writing a line");
        await program.OutputUpToAsync("world\n");
    }

    /// <summary>Reads an HTTP/1.1 message up to and including its empty line, and no further byte.</summary>
    internal static async Task<string> ReadHeaderAsync(Stream stream)
    {
        StringBuilder header = new();
        byte[] one = new byte[1];
        while (header.Length < 4 || header.ToString(header.Length - 4, 4) != "\r\n\r\n")
        {
            await stream.ReadExactlyAsync(one).InTime($"a header after: {header}");
            header.Append((char)one[0]);
        }

        return header.ToString();
    }

    /// <summary>Ends the program's input: it closes its TLS connection and exits.</summary>
    internal static async Task LeaveAsync(ExternalProgram program, KtlsStream stream)
    {
        program.Input.Close();
        Assert.Equal(0, await stream.ReadAsync(new byte[1]).InTime("the program's close_notify"));
        await stream.DisposeAsync();
        Assert.True(await program.ExitAsync() == 0, program.Errors);
    }
}
