using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests which server name a server reads from the bytes of a ClientHello (RFC 6066, section 3).</summary>
public class ServerNameTests
{
    /// <summary>Gets the modes and names, which have one character per byte.</summary>
    public static TheoryData<TlsMode, string> All
    {
        get
        {
            TheoryData<TlsMode, string> all = [];
            foreach (TlsMode mode in Modes.Every)
            {
                foreach (string name in new[]
                {
                    "localhost", "LocalHost.", "under_score.test", "127.0.0.1", "xn--bcher-kva.test", "XN--BCHER-KVA.test", "xn--.test",
                    "b\u00C3\u00BCcher.test", "two words.test", "b\u00C3\u00BC cher.test", " ", "tab\t.test", "line\r\n.test", "del\u007F.test",
                    "not\u00FFUTF-8.test", "half\u00C3", "a..b", ".", new string('a', 64) + ".test", new string('b', 255),
                })
                {
                    all.Add(mode, name);
                }
            }

            return all;
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_server_reads_the_name_that_SslStream_reads(TlsMode mode, string name)
    {
        byte[] hello = await HelloAsync(Encoding.Latin1.GetBytes(name));
        foreach (bool choosesOptions in new[] { false, true })
        {
            await SideBySide.RunAsync(mode, each => ReadNameAsync(each, hello, choosesOptions), $"{choosesOptions}");
        }
    }

    /// <summary>Returns the name that the server's callback receives, and the one that the stream shows then.</summary>
    private static async Task<string> ReadNameAsync(TlsMode mode, byte[] hello, bool choosesOptions)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using SslStream server = Modes.Create(mode, new NetworkStream(sockets.Server));
        List<string?> names = [];
        await sockets.Client.SendAsync(hello);
        sockets.Client.Shutdown(SocketShutdown.Send);
        SslServerAuthenticationOptions options = Handshakes.ServerOptions(SslProtocols.Tls13);
        if (choosesOptions)
        {
            await Assert.ThrowsAnyAsync<Exception>(() => server.HandshakeAsServerAsync(
                (_, info, _, _) =>
                {
                    names.AddRange([info.ServerName, server.TargetHostName]);
                    return ValueTask.FromResult(options);
                },
                null).InTime("the server to meet the end"));
        }
        else
        {
            options.ServerCertificateContext = null;
            options.ServerCertificateSelectionCallback = (_, host) =>
            {
                names.AddRange([host, server.TargetHostName]);
                return Certificates.Ecdsa;
            };
            await Assert.ThrowsAnyAsync<Exception>(() => server.HandshakeAsServerAsync(options).InTime("the server to meet the end"));
        }

        return names.Count == 0 ? "no callback" : string.Join('|', names);
    }

    /// <summary>Returns a ClientHello that SslStream wrote for another name of this length.</summary>
    private static async Task<byte[]> HelloAsync(byte[] name)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        byte[] other = Encoding.ASCII.GetBytes(new string('q', name.Length));
        SslClientAuthenticationOptions options = Handshakes.ClientOptions(SslProtocols.Tls13);
        options.TargetHost = Encoding.ASCII.GetString(other);
        await using SslStream client = new(new NetworkStream(sockets.Client));
        Task handshake = client.AuthenticateAsClientAsync(options);
        byte[] hello = await HelloProbe.ReadRecordAsync(sockets.Server);
        sockets.Server.Dispose();
        await Assert.ThrowsAnyAsync<Exception>(() => handshake.InTime("the client to give up"));
        // The length of a host name, and the name.
        byte[] entry = [(byte)(other.Length >> 8), (byte)other.Length, .. other];
        int at = hello.AsSpan().IndexOf(entry);
        Assert.True(at > 0, "the ClientHello has no server name");
        name.CopyTo(hello, at + 2);
        return hello;
    }
}
