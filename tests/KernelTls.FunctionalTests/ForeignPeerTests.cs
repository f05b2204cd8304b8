using System.Globalization;
using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>Tests third-party peers. Also run on OpenSSL without the kernel, on any host.</summary>
public class ForeignPeerTests
{
    private const int Size = 300_000;

    /// <summary>Several records for gnutls-cli, which writes what it receives byte by byte.</summary>
    private const int SmallSize = 60_000;

    public static TheoryData<TlsMode, SslProtocols> All => Modes.AllOnOpenSsl;

    [Theory]
    [MemberData(nameof(All))]
    public async Task OpenSSL_s_client_sends_receives_and_closes(TlsMode mode, SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram client = ExternalProgram.Start(
            "openssl", null, "s_client", "-quiet", "-no_ign_eof", "-nocommands", "-connect", $"127.0.0.1:{listener.PortText}", Flag(version),
            "-servername", "localhost", "-verify_return_error", "-CAfile", Certificates.WriteAuthority(directory.FullName));
        await using KtlsStream server = await listener.AcceptAsync(mode, version);

        await TalkAsync(client, server);
        client.Input.Close();
        Assert.Equal(0, await server.ReadAsync(new byte[1]).InTime("s_client's close_notify"));
        await client.ExitAsync();
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task OpenSSL_s_client_ends_when_the_server_closes(TlsMode mode, SslProtocols version)
    {
        using ForeignPeer listener = new();
        using ExternalProgram client = ExternalProgram.Start(
            "openssl", null, "s_client", "-quiet", "-connect", $"127.0.0.1:{listener.PortText}", Flag(version));
        await using KtlsStream server = await listener.AcceptAsync(mode, version);

        await Pattern.SendAsync(server, Size).InTime();
        await server.DisposeAsync().InTime();

        byte[] received = new byte[Size];
        await client.Output.ReadExactlyAsync(received).InTime();
        Pattern.AssertAt(0, received);
        Assert.Equal(0, await client.ExitAsync());
        Assert.DoesNotContain("unexpected eof", client.Errors, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task OpenSSL_s_server_answers_and_closes(TlsMode mode, SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        (string certificate, string key) = Certificates.WritePem(Certificates.Ecdsa, directory.FullName);
        using ExternalProgram server = ExternalProgram.Start(
            "openssl", null, "s_server", "-accept", "127.0.0.1:0", "-rev", Flag(version), "-cert", certificate, "-key", key);
        string said = await server.OutputUpToAsync("ACCEPT") + await server.OutputUpToAsync("\n");
        int port = int.Parse(said.TrimEnd().Split(':')[^1], CultureInfo.InvariantCulture);
        await using KtlsStream client = await ForeignPeer.ConnectAsync(port, mode, version);

        byte[] answer = new byte[6];
        foreach ((string question, string expected) in new[] { ("hello\n", "olleh\n"), ("level\n", "level\n"), ("abcde\n", "edcba\n") })
        {
            await client.WriteAsync(Encoding.ASCII.GetBytes(question)).InTime();
            await client.ReadExactlyAsync(answer).InTime();
            Assert.Equal(expected, Encoding.ASCII.GetString(answer));
        }

        await client.WriteAsync("CLOSE\n"u8.ToArray()).InTime();
        Assert.Equal(0, await client.ReadAsync(answer).InTime("s_server's close_notify"));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task OpenSSL_s_server_serves_a_file(TlsMode mode, SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        (string certificate, string key) = Certificates.WritePem(Certificates.Ecdsa, directory.FullName);
        File.WriteAllBytes(directory["file"], Pattern.Take(Size));
        using ExternalProgram server = ExternalProgram.Start(
            "openssl", directory.FullName, "s_server", "-accept", "127.0.0.1:0", "-HTTP", Flag(version), "-cert", certificate, "-key", key);
        string said = await server.OutputUpToAsync("ACCEPT") + await server.OutputUpToAsync("\n");
        int port = int.Parse(said.TrimEnd().Split(':')[^1], CultureInfo.InvariantCulture);
        File.WriteAllBytes(directory["file"], [.. "HTTP/1.0 200 OK\r\n\r\n"u8, .. Pattern.Take(Size)]);
        await using KtlsStream client = await ForeignPeer.ConnectAsync(port, mode, version);

        await client.WriteAsync("GET /file HTTP/1.0\r\n\r\n"u8.ToArray()).InTime();
        byte[] header = new byte["HTTP/1.0 200 OK\r\n\r\n".Length];
        await client.ReadExactlyAsync(header).InTime();
        Assert.Equal("HTTP/1.0 200 OK\r\n\r\n", Encoding.ASCII.GetString(header));
        await Pattern.ReceiveAsync(client, Size).InTime();
        Assert.Equal(0, await client.ReadAsync(header).InTime("s_server's close_notify"));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task GnuTLS_sends_receives_and_closes(TlsMode mode, SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram client = ExternalProgram.Start(
            "gnutls-cli", null, "--logfile", directory["log"], "--x509cafile", Certificates.WriteAuthority(directory.FullName),
            "--sni-hostname", "localhost", "--verify-hostname", "localhost", "--port", listener.PortText,
            "--priority", $"NORMAL:-VERS-ALL:+VERS-{(version == SslProtocols.Tls12 ? "TLS1.2" : "TLS1.3")}", "127.0.0.1");
        await using KtlsStream server = await listener.AcceptAsync(mode, version);

        await TalkAsync(client, server, SmallSize);
        client.Input.Close();
        Assert.Equal(0, await server.ReadAsync(new byte[1]).InTime("gnutls-cli's close_notify"));
        await server.DisposeAsync();
        Assert.Equal(0, await client.ExitAsync());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Curl_downloads(TlsMode mode, SslProtocols version)
    {
        const int Length = 5_000_003;
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ExternalProgram curl = ExternalProgram.Start(
            "curl", null, "--silent", "--show-error", "--max-time", $"{Limits.Wait.TotalSeconds}", "--http1.1",
            version == SslProtocols.Tls12 ? "--tls-max" : "--tlsv1.3", version == SslProtocols.Tls12 ? "1.2" : "--tlsv1.3",
            "--cacert", Certificates.WriteAuthority(directory.FullName), "--resolve", $"localhost:{listener.PortText}:127.0.0.1",
            "--output", directory["download"], $"https://localhost:{listener.PortText}/");
        await using (KtlsStream server = await listener.AcceptAsync(mode, version))
        {
            Assert.Equal("localhost", server.TargetHostName);
            string request = await ReadRequestAsync(server);
            Assert.StartsWith("GET / HTTP/1.1\r\n", request, StringComparison.Ordinal);
            await server.WriteAsync(Encoding.ASCII.GetBytes($"HTTP/1.1 200 OK\r\nContent-Length: {Length}\r\n\r\n")).InTime();
            await Pattern.SendAsync(server, Length).InTime();
        }

        Assert.True(await curl.ExitAsync() == 0, curl.Errors);
        byte[] download = File.ReadAllBytes(directory["download"]);
        Assert.Equal(Length, download.Length);
        Pattern.AssertAt(0, download);
    }

    private static async Task<string> ReadRequestAsync(KtlsStream server)
    {
        StringBuilder request = new();
        byte[] buffer = new byte[1024];
        while (!request.ToString().EndsWith("\r\n\r\n", StringComparison.Ordinal))
        {
            int read = await server.ReadAsync(buffer).InTime("the request");
            Assert.NotEqual(0, read);
            request.Append(Encoding.ASCII.GetString(buffer, 0, read));
        }

        return request.ToString();
    }

    /// <summary>Exchanges a line each way, then a large amount each way.</summary>
    private static async Task TalkAsync(ExternalProgram client, KtlsStream server, int size = Size)
    {
        byte[] line = new byte[6];
        await client.Input.WriteAsync("hello\n"u8.ToArray());
        await client.Input.FlushAsync();
        await server.ReadExactlyAsync(line).InTime("a line from the program");
        Assert.Equal("hello\n"u8.ToArray(), line);
        await server.WriteAsync("world\n"u8.ToArray()).InTime();
        await client.Output.ReadExactlyAsync(line).InTime("the program to have a line");
        Assert.Equal("world\n"u8.ToArray(), line);

        Task sending = Task.Run(async () =>
        {
            await client.Input.WriteAsync(Pattern.Take(size));
            await client.Input.FlushAsync();
        });
        await Pattern.ReceiveAsync(server, size).InTime("much from the program");
        await sending.InTime();
        Task answering = Pattern.SendAsync(server, size);
        byte[] received = new byte[size];
        await client.Output.ReadExactlyAsync(received).InTime("the program to have much");
        await answering.InTime();
        Pattern.AssertAt(0, received);
    }

    private static string Flag(SslProtocols version) => version == SslProtocols.Tls12 ? "-tls1_2" : "-tls1_3";
}
