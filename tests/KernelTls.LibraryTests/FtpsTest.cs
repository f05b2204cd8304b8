using System.Security.Authentication;
using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;

namespace KernelTls.LibraryTests;

/// <summary>Tests FTP over TLS with a server that accepts a data connection only if it resumes the session of its control connection.</summary>
public abstract class FtpsTest(FtpServer server) : LibraryTest("KernelTls.LibraryTests")
{
    private const int LargeSize = 3_000_001;

    /// <summary>Each control connection has one data connection.</summary>
    [Theory]
    [InlineData(SslProtocols.Tls12, false)]
    [InlineData(SslProtocols.Tls12, true)]
    [InlineData(SslProtocols.Tls13, false)]
    [InlineData(SslProtocols.Tls13, true)]
    public async Task A_large_file_goes_up_and_comes_down(SslProtocols version, bool synchronously)
    {
        string name = $"large {version} {synchronously}";
        await using (FtpsClient client = await FtpsClient.ConnectAsync(server, version, synchronously))
        {
            await client.StoreAsync(name, Pattern.Take(LargeSize));
            await client.CommandAsync("QUIT", "221");
        }

        await using FtpsClient next = await FtpsClient.ConnectAsync(server, version, synchronously);
        byte[] large = await next.RetrieveAsync(name);
        Assert.Equal(LargeSize, large.Length);
        Pattern.AssertAt(0, large);
        Assert.Equal(4, Handshakes);
    }

    [Fact]
    public async Task A_client_connects_again_when_the_server_has_restarted()
    {
        await using (FtpsClient client = await FtpsClient.ConnectAsync(server, SslProtocols.None))
        {
            await client.StoreAsync("kept", Pattern.Take(1000));
            await server.RestartAsync();
            await Assert.ThrowsAnyAsync<Exception>(() => client.CommandAsync("NOOP", "200"));
        }

        await using FtpsClient next = await FtpsClient.ConnectAsync(server, SslProtocols.None);
        Assert.Equal(Pattern.Take(1000), await next.RetrieveAsync("kept"));
        Assert.Equal(4, Handshakes);
    }

    /// <summary>Otherwise the other tests would show nothing of the sessions.</summary>
    [Theory]
    [InlineData(SslProtocols.Tls12)]
    [InlineData(SslProtocols.Tls13)]
    public async Task Without_resumption_the_server_refuses(SslProtocols version)
    {
        await using (FtpsClient client = await FtpsClient.ConnectAsync(server, version))
        {
            client.Resumes = false;
            await Assert.ThrowsAnyAsync<Exception>(() => client.StoreAsync($"refused {version}", Pattern.Take(LargeSize)));
        }

        BeginCount();
        await using FtpsClient next = await FtpsClient.ConnectAsync(server, version);
        await next.StoreAsync($"accepted {version}", Pattern.Take(1));
        Assert.Equal(2, Handshakes);
    }

    protected override string ServerErrors => server.Errors;

    protected override Task StartAsync() => server.StartAsync();

    /// <summary>Transfers many files, each by a data connection that resumes a session, on one control connection.</summary>
    protected async Task TransferManyFilesAsync(SslProtocols version)
    {
        await using FtpsClient client = await FtpsClient.ConnectAsync(server, version);
        for (int i = 0; i < 20; i++)
        {
            byte[] small = Pattern.Take(i * 100, i);
            await client.StoreAsync($"small {version} {i}", small);
            Assert.Equal(small, await client.RetrieveAsync($"small {version} {i}"));
        }

        Assert.Equal(41, Handshakes);
    }
}
