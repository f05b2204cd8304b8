using System.Net.Security;
using System.Security.Authentication;
using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;

namespace KernelTls.LibraryTests;

/// <summary>Tests FTP over TLS with vsftpd.</summary>
public sealed class VsftpdTests(VsftpdServer server) : FtpsTest(server), IClassFixture<VsftpdServer>
{
    // More than the sockets' buffers hold.
    private const int Size = 20_000_001;

    [Theory]
    [InlineData(SslProtocols.Tls12)]
    [InlineData(SslProtocols.Tls13)]
    public Task Many_small_files_go_up_and_come_down(SslProtocols version) => TransferManyFilesAsync(version);

    /// <summary>The client ends the data connection in the middle of a download, and the control connection continues.</summary>
    [Theory]
    [InlineData(SslProtocols.Tls12)]
    [InlineData(SslProtocols.Tls13)]
    public async Task A_cancelled_download_leaves_a_client_that_works(SslProtocols version)
    {
        await using FtpsClient client = await FtpsClient.ConnectAsync(server, version);
        await client.StoreAsync($"cancelled {version}", Pattern.Take(Size));
        using CancellationTokenSource cancellation = new();
        await using (SslStream data = await client.OpenDataAsync($"RETR cancelled {version}"))
        {
            byte[] start = new byte[100_000];
            await data.ReadExactlyAsync(start).AsTask().InTime("the start of the download");
            Pattern.AssertAt(0, start);
            await cancellation.CancelAsync();
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => data.CopyToAsync(Stream.Null, cancellation.Token)).InTime("the cancelled read");
        }

        await client.ReplyAsync("426");
        Assert.Equal(Size, (await client.RetrieveAsync($"cancelled {version}")).Length);
        Assert.Equal(4, Handshakes);
    }
}
