using System.Net.Security;
using System.Security.Authentication;
using KernelTls.AspNetCore.Tls;
using KernelTls.Handshake;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests the parser with ClientHellos that SslStream writes, and that nothing else is accepted as one.
/// </summary>
public class ClientHelloParserTests
{
    private const int ExtensionsOffset = 5 + 4 + 2 + 32;

    [Theory]
    [InlineData("localhost", "localhost")]
    [InlineData("LocalHost", "LocalHost")]
    [InlineData("bücher.test", "bücher.test")]
    [InlineData("xn--bcher-kva.test", "bücher.test")]
    [InlineData("127.0.0.1", "")]
    [InlineData("", "")]
    public async Task The_name_is_the_one_that_the_client_asks_for(string host, string expected)
    {
        byte[] record = await RecordAsync(options => options.TargetHost = host);

        Assert.True(ClientHelloParser.TryParse(record, out SslClientHelloInfo hello));

        Assert.Equal(expected, hello.ServerName);
    }

    [Theory]
    [InlineData(SslProtocols.Tls12)]
    [InlineData(SslProtocols.Tls13)]
    [InlineData(SslProtocols.Tls12 | SslProtocols.Tls13)]
    public async Task The_versions_are_those_that_the_client_offers(SslProtocols offered)
    {
        byte[] record = await RecordAsync(options => options.EnabledSslProtocols = offered);

        Assert.True(ClientHelloParser.TryParse(record, out SslClientHelloInfo hello));

        Assert.Equal(offered, hello.SslProtocols);
    }

    [Fact]
    public async Task A_part_of_one_is_none()
    {
        byte[] record = await RecordAsync(_ => { });
        for (int length = 0; length < record.Length; length++)
        {
            Assert.False(ClientHelloParser.TryParse(record.AsSpan(0, length), out _), $"{length} of {record.Length} bytes");
        }
    }

    /// <summary>Any byte may be wrong: the result may then be nonsense, but nothing is read beyond the end.</summary>
    [Fact]
    public async Task No_byte_is_trusted()
    {
        byte[] record = await RecordAsync(_ => { });
        int refused = 0;
        for (int i = 5; i < record.Length; i++)
        {
            foreach (byte wrong in new byte[] { 0, 1, 0x7F, 0xFF })
            {
                byte[] copy = [.. record];
                copy[i] = wrong;
                refused += ClientHelloParser.TryParse(copy, out _) ? 0 : 1;
            }
        }

        Assert.InRange(refused, 10, record.Length * 4);
    }

    [Theory]
    [InlineData("a\0b", "")]
    [InlineData("a\u00FFb", "")]
    [InlineData("a b", "a b")]
    [InlineData("\n\u007Fb", "\n\u007Fb")]
    public async Task A_name_is_any_text_without_NUL(string name, string expected)
    {
        byte[] record = await RecordAsync(options => options.TargetHost = "xyz");
        int at = record.AsSpan(ExtensionsOffset).IndexOf("xyz"u8) + ExtensionsOffset;
        Assert.True(at > ExtensionsOffset);
        System.Text.Encoding.Latin1.GetBytes(name).CopyTo(record, at);

        Assert.True(ClientHelloParser.TryParse(record, out SslClientHelloInfo hello));

        Assert.Equal(expected, hello.ServerName);
    }

    /// <summary>Returns the first record of a client that gets no answer.</summary>
    private static async Task<byte[]> RecordAsync(Action<SslClientAuthenticationOptions> configure)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        SslClientAuthenticationOptions options = Handshakes.ClientOptions(SslProtocols.Tls12 | SslProtocols.Tls13);
        configure(options);
        await using SslStream client = new(new System.Net.Sockets.NetworkStream(sockets.Client));
        Task handshake = client.AuthenticateAsClientAsync(options);
        byte[] record = await ClientHelloPeek.ReadAsync(sockets.Server, CancellationToken.None).InTime("the client's hello");
        sockets.Server.Dispose();
        await Assert.ThrowsAnyAsync<Exception>(() => handshake.InTime("the client to give up"));
        return record;
    }
}
