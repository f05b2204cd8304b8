using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using MailKit;
using MailKit.Net.Imap;
using MailKit.Security;
using MimeKit;

namespace KernelTls.LibraryTests;

/// <summary>Tests MailKit's IMAP client with Dovecot, which requires a client certificate.</summary>
public sealed class ImapTests(ImapServer server) : LibraryTest("MailKit"), IClassFixture<ImapServer>
{
    private const int LargeSize = 3_000_001;

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Many_small_and_a_large_message(bool synchronously)
    {
        using ImapClient client = await ConnectAsync(synchronously ? "blocking" : "async", synchronously);
        IMailFolder inbox = client.Inbox!;
        if (synchronously)
        {
            await Limits.Blocking(() =>
            {
                inbox.Open(FolderAccess.ReadWrite);
                for (int i = 0; i < 20; i++)
                {
                    inbox.Append(Mails.Small(i));
                }

                inbox.Append(Mails.Large(LargeSize));
                for (int i = 0; i < 20; i++)
                {
                    Assert.Equal($"number {i}", inbox.GetMessage(i).Subject);
                }

                Mails.AssertLarge(LargeSize, inbox.GetMessage(20));
            }).InTime("the messages");
        }
        else
        {
            await inbox.OpenAsync(FolderAccess.ReadWrite).InTime("the folder");
            for (int i = 0; i < 20; i++)
            {
                await inbox.AppendAsync(Mails.Small(i)).InTime($"message {i} to the server");
            }

            await inbox.AppendAsync(Mails.Large(LargeSize)).InTime("the large message to the server");
            for (int i = 0; i < 20; i++)
            {
                Assert.Equal($"number {i}", (await inbox.GetMessageAsync(i).InTime($"message {i}")).Subject);
            }

            Mails.AssertLarge(LargeSize, await inbox.GetMessageAsync(20).InTime("the large message"));
        }

        await client.DisconnectAsync(true).InTime("the end");
        Assert.Equal(1, Handshakes);
    }

    /// <summary>IDLE ends when it is cancelled, and the client continues. A cancelled command ends the connection.</summary>
    [Fact]
    public async Task A_cancelled_command_leaves_a_client_that_connects_again()
    {
        using ImapClient client = await ConnectAsync("cancelled");
        IMailFolder inbox = client.Inbox!;
        await inbox.OpenAsync(FolderAccess.ReadWrite).InTime("the folder");
        await inbox.AppendAsync(Mails.Large(LargeSize)).InTime("the large message to the server");
        using (CancellationTokenSource done = new(TimeSpan.FromMilliseconds(200)))
        {
            await client.IdleAsync(done.Token).InTime("the end of the wait for news");
        }

        using CancellationTokenSource cancellation = new();
        CancelOnProgress progress = new(cancellation);
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => inbox.GetMessageAsync(0, cancellation.Token, progress)).InTime("the cancelled command");
        Assert.False(client.IsConnected);

        await ConnectAsync(client, "cancelled", synchronously: false);
        await client.Inbox!.OpenAsync(FolderAccess.ReadOnly).InTime("the folder");
        Mails.AssertLarge(LargeSize, await client.Inbox.GetMessageAsync(0).InTime("the large message"));
        Assert.Equal(2, Handshakes);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task A_client_connects_again_when_the_server_has_restarted(bool synchronously)
    {
        using ImapClient client = await ConnectAsync("restarted", synchronously);
        await server.RestartAsync();
        await Assert.ThrowsAnyAsync<Exception>(() => synchronously ? Limits.Blocking(() => client.NoOp()) : client.NoOpAsync());
        Assert.False(client.IsConnected);

        await ConnectAsync(client, "restarted", synchronously);
        await client.NoOpAsync().InTime("an answer");
        Assert.Equal(2, Handshakes);
    }

    [Fact]
    public async Task Without_a_certificate_the_server_lets_nobody_in()
    {
        using ImapClient client = new() { CheckCertificateRevocation = false };
        await client.ConnectAsync("127.0.0.1", server.Port, SecureSocketOptions.SslOnConnect).InTime("a connection");

        await Assert.ThrowsAnyAsync<AuthenticationException>(() => client.AuthenticateAsync("nobody", ImapServer.Password)).InTime();
    }

    protected override string ServerErrors => server.Errors;

    protected override Task StartAsync() => server.StartAsync();

    private async Task<ImapClient> ConnectAsync(string user, bool synchronously = false)
    {
        ImapClient client = new() { CheckCertificateRevocation = false, ClientCertificates = [Certificates.Client] };
        await ConnectAsync(client, user, synchronously);
        return client;
    }

    private async Task ConnectAsync(ImapClient client, string user, bool synchronously)
    {
        if (synchronously)
        {
            await Limits.Blocking(() => client.Connect("127.0.0.1", server.Port, SecureSocketOptions.SslOnConnect)).InTime("a connection");
            await Limits.Blocking(() => client.Authenticate(user, ImapServer.Password)).InTime("the password");
        }
        else
        {
            await client.ConnectAsync("127.0.0.1", server.Port, SecureSocketOptions.SslOnConnect).InTime("a connection");
            await client.AuthenticateAsync(user, ImapServer.Password).InTime("the password");
        }
    }
}
