using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using MailKit.Net.Smtp;
using MailKit.Security;

namespace KernelTls.LibraryTests;

/// <summary>Tests MailKit's SMTP client with OpenSMTPD.</summary>
public sealed class SmtpTests(OpenSmtpdServer server) : LibraryTest("MailKit"), IClassFixture<OpenSmtpdServer>
{
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Many_small_and_a_large_message_on_one_connection(bool synchronously)
    {
        using SmtpClient client = await ConnectAsync(synchronously);
        for (int i = 0; i <= 10; i++)
        {
            MimeKit.MimeMessage mail = i == 10 ? Mails.Large(3_000_001) : Mails.Small(i);
            string answer = synchronously
                ? await Limits.Blocking(() => client.Send(mail)).InTime($"message {i}")
                : await client.SendAsync(mail).InTime($"message {i}");
            Assert.Contains("Message accepted for delivery", answer, StringComparison.Ordinal);
        }

        await client.DisconnectAsync(true).InTime("the end");
        Assert.Equal(1, Handshakes);
    }

    [Fact]
    public async Task A_client_connects_again_when_the_server_has_restarted()
    {
        using SmtpClient client = await ConnectAsync();
        await server.RestartAsync();
        await Assert.ThrowsAnyAsync<Exception>(() => client.SendAsync(Mails.Small(1)));
        Assert.False(client.IsConnected);

        await client.ConnectAsync("127.0.0.1", server.Port, SecureSocketOptions.SslOnConnect).InTime("a connection");
        await client.SendAsync(Mails.Small(2)).InTime("a message");
        Assert.Equal(2, Handshakes);
    }

    protected override string ServerErrors => server.Errors;

    protected override Task StartAsync() => server.StartAsync();

    private async Task<SmtpClient> ConnectAsync(bool synchronously = false)
    {
        SmtpClient client = new() { CheckCertificateRevocation = false };
        if (synchronously)
        {
            await Limits.Blocking(() => client.Connect("127.0.0.1", server.Port, SecureSocketOptions.SslOnConnect)).InTime("a connection");
        }
        else
        {
            await client.ConnectAsync("127.0.0.1", server.Port, SecureSocketOptions.SslOnConnect).InTime("a connection");
        }

        return client;
    }
}
