using System.Net;
using System.Security.Authentication;
using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using MailKit.Net.Smtp;
using MailKit.Security;
using MimeKit;
using SmtpServer;
using SmtpServer.Net;

namespace KernelTls.LibraryTests;

/// <summary>Tests SmtpServer, a server's library, with MailKit. Both ends are woven and in this process.</summary>
[Trait("host", "yes")]
public sealed class SmtpServerTests() : LibraryTest("MailKit", "SmtpServer")
{
    private const int LargeSize = 3_000_001;

    private readonly ReservedPort _securePort = new();
    private readonly ReservedPort _plainPort = new();
    private readonly MailStore _store = new();
    private readonly TemporaryDirectory _files = new();
    private SmtpServer.SmtpServer _server = null!;
    private CancellationTokenSource _ending = null!;
    private Task _serving = null!;

    /// <summary>The connection begins with TLS, or in plain text.</summary>
    [Theory]
    [InlineData(SecureSocketOptions.SslOnConnect)]
    [InlineData(SecureSocketOptions.StartTls)]
    public async Task Many_small_and_a_large_message_on_one_connection(SecureSocketOptions options)
    {
        using SmtpClient client = await ConnectAsync(options);
        for (int i = 0; i < 10; i++)
        {
            await client.SendAsync(Mails.Small(i)).InTime($"message {i}");
            Assert.Equal($"number {i}", (await ReceivedAsync()).Subject);
        }

        await client.SendAsync(Mails.Large(LargeSize)).InTime("the large message");
        Mails.AssertLarge(LargeSize, await ReceivedAsync());
        await client.DisconnectAsync(true).InTime("the end");
        Assert.Equal(2, Handshakes);
    }

    [Fact]
    public async Task Many_clients_at_a_time()
    {
        string?[] subjects = await Task.WhenAll(Enumerable.Range(0, 20).Select(async i =>
        {
            using SmtpClient client = await ConnectAsync(i % 2 == 0 ? SecureSocketOptions.SslOnConnect : SecureSocketOptions.StartTls);
            await client.SendAsync(Mails.Small(i)).InTime($"message {i}");
            await client.DisconnectAsync(true).InTime("the end");
            return (await ReceivedAsync()).Subject;
        }));

        Assert.Equal(Enumerable.Range(0, 20).Select(i => $"number {i}").Order(), subjects.Order());
        Assert.Equal(40, Handshakes);
    }

    /// <summary>The server's end alone is KernelTls's. MailKit's connection shows that it serves both.</summary>
    [Theory]
    [InlineData(SslProtocols.Tls12)]
    [InlineData(SslProtocols.Tls13)]
    public async Task A_mail_by_another_client(SslProtocols version)
    {
        string[] lines = [.. Enumerable.Range(0, 20_000).Select(i => $"line {i} of a mail that OpenSSL's client sends")];
        using ExternalProgram other = OpenSslProgram.Connect(_plainPort.Number, _files, version, "-starttls", "smtp", "-quiet", "-crlf");
        await SayAsync(other, "EHLO client.test", "250 ");
        await SayAsync(other, "MAIL FROM:<sender@client.test>", "250 ");
        await SayAsync(other, "RCPT TO:<nobody@localhost>", "250 ");
        await SayAsync(other, "DATA", "354 ");
        await SayAsync(other, $"Subject: by OpenSSL\n\n{string.Join('\n', lines)}\n.", "250 ");
        MimeMessage mail = await ReceivedAsync();
        await SayAsync(other, "QUIT", "221 ");
        await other.ExitAsync();
        Assert.Equal(lines, mail.TextBody!.Split(["\r\n", "\n"], StringSplitOptions.RemoveEmptyEntries));

        using SmtpClient client = await ConnectAsync(SecureSocketOptions.StartTls);
        await client.SendAsync(Mails.Small(1)).InTime("a message");
        Assert.Equal("number 1", (await ReceivedAsync()).Subject);
        Assert.Equal(3, Handshakes);
    }

    /// <summary>The server sees the connection end in the middle of a mail, and drops the mail.</summary>
    [Fact]
    public async Task A_cancelled_message_leaves_a_server_that_works()
    {
        TaskCompletionSource ended = new(TaskCreationOptions.RunContinuationsAsynchronously);
        _server.SessionFaulted += (_, _) => ended.TrySetResult();
        _server.SessionCompleted += (_, _) => ended.TrySetResult();
        using CancellationTokenSource cancellation = new();
        using (SmtpClient client = await ConnectAsync(SecureSocketOptions.SslOnConnect))
        {
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => client.SendAsync(
                Mails.Large(LargeSize), cancellation.Token, new CancelOnProgress(cancellation))).InTime("the cancelled message");
        }

        await ended.Task.InTime("the end of the server's session");
        using SmtpClient next = await ConnectAsync(SecureSocketOptions.SslOnConnect);
        await next.SendAsync(Mails.Small(2)).InTime("a message");
        Assert.Equal("number 2", (await ReceivedAsync()).Subject);
        Assert.Equal(4, Handshakes);
    }

    [Fact]
    public async Task A_client_connects_again_when_the_server_has_restarted()
    {
        using SmtpClient client = await ConnectAsync(SecureSocketOptions.StartTls);
        await EndAsync();
        await Assert.ThrowsAnyAsync<Exception>(() => client.SendAsync(Mails.Small(1))).InTime("the lost message");
        Assert.False(client.IsConnected);

        await StartAsync();
        await ConnectAsync(client, SecureSocketOptions.StartTls);
        await client.SendAsync(Mails.Small(2)).InTime("a message");
        Assert.Equal("number 2", (await ReceivedAsync()).Subject);
        Assert.Equal(4, Handshakes);
    }

    protected override async Task StartAsync()
    {
        TaskCompletionSource listening = new(TaskCreationOptions.RunContinuationsAsynchronously);
        int started = 0;
        EndpointListenerFactory listeners = new();
        listeners.EndpointStarted += (_, _) =>
        {
            if (Interlocked.Increment(ref started) == 2)
            {
                listening.TrySetResult();
            }
        };
        SmtpServer.ComponentModel.ServiceProvider services = new();
        services.Add(_store);
        services.Add(listeners);
        _server = new SmtpServer.SmtpServer(
            new SmtpServerOptionsBuilder()
                .ServerName("localhost")
                .MaxMessageSize(64 << 20, MaxMessageSizeHandling.Strict)
                .Endpoint(e => Configure(e, _securePort).IsSecure(true))
                .Endpoint(e => Configure(e, _plainPort))
                .Build(),
            services);
        _ending = new CancellationTokenSource();
        _serving = _server.StartAsync(_ending.Token);
        await listening.Task.InTime("the server to listen");
    }

    protected override async Task StopAsync()
    {
        await EndAsync();
        _securePort.Dispose();
        _plainPort.Dispose();
        _files.Dispose();
    }

    /// <summary>Ends the server and all its connections.</summary>
    private async Task EndAsync()
    {
        await _ending.CancelAsync();
        await _serving.InTime("the server's end");
        _ending.Dispose();
    }

    private async Task<SmtpClient> ConnectAsync(SecureSocketOptions options)
    {
        SmtpClient client = new() { CheckCertificateRevocation = false };
        await ConnectAsync(client, options);
        return client;
    }

    private Task ConnectAsync(SmtpClient client, SecureSocketOptions options)
    {
        ReservedPort port = options == SecureSocketOptions.StartTls ? _plainPort : _securePort;
        return client.ConnectAsync("127.0.0.1", port.Number, options).InTime("a connection");
    }

    private static EndpointDefinitionBuilder Configure(EndpointDefinitionBuilder endpoint, ReservedPort port) => endpoint
        .Endpoint(new IPEndPoint(IPAddress.Loopback, port.Number))
        .Certificate(Certificates.Ecdsa)
        .SupportedSslProtocols(SslProtocols.Tls12 | SslProtocols.Tls13);

    private static async Task SayAsync(ExternalProgram client, string line, string answer)
    {
        await client.SayAsync(line);
        await client.OutputUpToAsync(answer);
        await client.OutputUpToAsync("\n");
    }

    private async Task<MimeMessage> ReceivedAsync() => await _store.Mails.ReadAsync().InTime("the message at the server");
}
