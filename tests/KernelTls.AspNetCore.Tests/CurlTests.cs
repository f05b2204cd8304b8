using System.Security.Authentication;
using System.Text.RegularExpressions;
using KernelTls.Tests;
using Microsoft.AspNetCore.Server.Kestrel.Https;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests the server with curl.</summary>
[Trait("loop", "outer-kernel")]
public class CurlTests
{
    private const string WriteOut = "%{http_version} %{response_code} %{num_connects}\\n";

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols, string> AllProtocols => Modes.AllWith("1.1", "2");

    public static TheoryData<TlsMode, string> BothProtocols => Modes.With("1.1", "2");

    [Theory]
    [MemberData(nameof(AllProtocols))]
    public async Task It_downloads_and_asks_again_on_the_same_connection(TlsMode mode, SslProtocols version, string http)
    {
        const int Size = 3_000_001;
        await using InteropServer server = await InteropServer.StartAsync(mode);

        string said = await server.CurlAsync(
            version, $"--http{http}", "--write-out", WriteOut,
            "--output", server.Directory["body"], server.Address($"/bytes/{Size}"),
            "--output", server.Directory["offload"], server.Address("/offload"));

        Assert.Equal($"{http} 200 1\n{http} 200 0\n", said);
        server.AssertReceived("body", Size);
        Assert.Equal(Offloads.Expected(mode, version), File.ReadAllText(server.Directory["offload"]));
        server.AssertConnections(1, version);
    }

    [Theory]
    [MemberData(nameof(BothProtocols))]
    public async Task It_gets_a_part_of_a_static_file_and_its_head(TlsMode mode, string http)
    {
        const int Size = 2_000_001;
        await using InteropServer server = await InteropServer.StartAsync(mode);
        server.AddFile("file", Size);

        string part = await server.CurlAsync(
            SslProtocols.Tls13, $"--http{http}", "--range", "70001-1700000", "--write-out", WriteOut,
            "--output", server.Directory["part"], server.Address("/file"));
        string head = await server.CurlAsync(SslProtocols.Tls13, $"--http{http}", "--head", server.Address("/file"));

        Assert.Equal($"{http} 206 1\n", part);
        server.AssertReceived("part", 1_630_000, position: 70_001);
        Assert.StartsWith($"HTTP/{http} 200", head, StringComparison.Ordinal);
        Assert.Contains($"\r\ncontent-length: {Size}\r\n", head, StringComparison.OrdinalIgnoreCase);
        server.AssertConnections(2, SslProtocols.Tls13);
    }

    /// <summary>On HTTP/1.1 curl first asks for permission (Expect: 100-continue).</summary>
    [Theory]
    [MemberData(nameof(BothProtocols))]
    public async Task It_uploads(TlsMode mode, string http)
    {
        const int Size = (1 << 20) + 1;
        await using InteropServer server = await InteropServer.StartAsync(mode);
        File.WriteAllBytes(server.Directory["upload"], Pattern.Take(Size));

        string answer = await server.CurlAsync(
            SslProtocols.Tls13, $"--http{http}", "--header", "Expect: 100-continue",
            "--upload-file", server.Directory["upload"], server.Address("/check"));

        Assert.Equal($"{Size} HTTP/{http}", answer);
        server.AssertConnections(1, SslProtocols.Tls13);
    }

    /// <summary>
    /// Uses curl's trace of the messages that it receives: a server that resumes a session sends no certificate.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Its_second_connection_resumes_the_session_of_the_first(TlsMode mode, SslProtocols version)
    {
        await using InteropServer server = await InteropServer.StartAsync(mode);
        using ExternalProgram curl = Curl.Start(
            server.Port, server.Directory, version, "--http1.1", "--verbose", "--header", "Connection: close", "--write-out", WriteOut,
            "--output", server.Directory["first"], server.Address("/bytes/100000"),
            "--output", server.Directory["second"], server.Address("/bytes/100000"));

        Assert.Equal("1.1 200 1\n1.1 200 1\n", await curl.SucceedAsync());

        Assert.Equal(2, Regex.Count(curl.Errors, @"\(IN\), TLS handshake, Server hello"));
        Assert.True(Regex.Count(curl.Errors, @"\(IN\), TLS handshake, Certificate \(11\)") == 1, $"No resumption: {curl.Errors}");
        server.AssertReceived("first", 100_000);
        server.AssertReceived("second", 100_000);
        server.AssertConnections(2, version);
    }

    /// <summary>
    /// Without a certificate, curl exits with 35 if the handshake failed, or with 52, 55 or 56 if the request or
    /// response was lost. Kestrel itself decides about a missing certificate, after the handshake.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task It_is_answered_with_the_certificate_that_is_required_and_not_without(TlsMode mode, SslProtocols version)
    {
        await using InteropServer server = await InteropServer.StartAsync(mode, https =>
        {
            https.ClientCertificateMode = ClientCertificateMode.RequireCertificate;
            https.OnAuthenticate = (_, options) => options.CertificateChainPolicy = Certificates.Trust();
        });
        (string certificate, string key) = Certificates.WritePem(Certificates.Client, server.Directory.FullName);

        using ExternalProgram without = Curl.Start(server.Port, server.Directory, version, "--http1.1", server.Address("/certificate"));
        Assert.Contains(await without.ExitAsync(), (int[])[35, 52, 55, 56]);
        Assert.False(HasRequest(server));

        Assert.Equal(
            Certificates.Client.Subject,
            await server.CurlAsync(version, "--cert", certificate, "--key", key, server.Address("/certificate")));
        Assert.True(HasRequest(server));
    }

    private static bool HasRequest(InteropServer server) =>
        server.Server.Events.Entries.Any(e => e.Message.StartsWith("Request starting", StringComparison.Ordinal));
}
