using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Interop;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests the OCSP responses that a server staples (RFC 6066, section 8): those of a context that may fetch one, once it
/// has arrived.
/// </summary>
/// <remarks>
/// The client is openssl s_client, because SslStream requests a response but does not expose it. The responder is
/// openssl as well. <see cref="StapledResponseTests"/> tests clients.
/// </remarks>
[Trait("loop", "outer-kernel")]
public class OcspStaplingTests
{
    /// <summary>The output of s_client, which OpenSSL 3.6 has changed.</summary>
    private const string NoResponse = "OCSP responses?: no (response sent|responses sent|OCSP response received)\n";

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols, string> Ways => Modes.AllWith("context", "options callback");

    public static TheoryData<TlsMode, SslProtocols, string> WaysWithout => Modes.AllWith("offline context", "certificate", "callback");

    [Theory]
    [MemberData(nameof(Ways))]
    public async Task A_context_s_response_is_stapled(TlsMode mode, SslProtocols version, string way)
    {
        using OcspResponder responder = await OcspResponder.StartAsync();
        SslStreamCertificateContext context = await responder.ReadyContextAsync();
        SslServerAuthenticationOptions options = Options(version, context);

        string said = await ServeAsync(mode, version, asks: true, s => way == "context"
            ? s.HandshakeAsServerAsync(options)
            : s.HandshakeAsServerAsync((_, _, _, _) => ValueTask.FromResult(options), null));

        Assert.Contains("OCSP Response Status: successful", said, StringComparison.Ordinal);
        Assert.Contains($"Serial Number: {OcspResponder.Serial}", said, StringComparison.Ordinal);
        Assert.Contains("Cert Status: good", said, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Who_does_not_ask_gets_no_response(TlsMode mode, SslProtocols version)
    {
        using OcspResponder responder = await OcspResponder.StartAsync();
        SslServerAuthenticationOptions options = Options(version, await responder.ReadyContextAsync());

        string said = await ServeAsync(mode, version, asks: false, s => s.HandshakeAsServerAsync(options));

        Assert.DoesNotContain("OCSP response", said, StringComparison.OrdinalIgnoreCase);
    }

    /// <summary>Also if another context of the same certificate has a response.</summary>
    [Theory]
    [MemberData(nameof(WaysWithout))]
    public async Task No_response_is_stapled_unless_the_context_may_fetch_one(TlsMode mode, SslProtocols version, string way)
    {
        using OcspResponder responder = await OcspResponder.StartAsync();
        SslStreamCertificateContext other = await responder.ReadyContextAsync();

        string said = await ServeAsync(mode, version, asks: true, s => s.HandshakeAsServerAsync(Options(version, way, responder.Certificate)));

        Assert.Matches(NoResponse, said);
        Assert.NotNull(RuntimeInternals.OcspResponseOf(other));
    }

    /// <summary>
    /// The root of a bare certificate is unknown here, which alone keeps SslStream from fetching a response.
    /// </summary>
    [Theory]
    [MemberData(nameof(WaysWithout))]
    public async Task No_response_is_fetched_unless_the_context_may(TlsMode mode, SslProtocols version, string way)
    {
        using TcpListener silent = Listen();
        using X509Certificate2 certificate = OcspResponder.MakeCertificate(PortOf(silent));

        string said = await ServeAsync(mode, version, asks: true, s => s.HandshakeAsServerAsync(Options(version, way, certificate)));

        Assert.Matches(NoResponse, said);
        Assert.False(silent.Pending(), "The responder was asked.");
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_response_on_its_way_is_not_waited_for(TlsMode mode, SslProtocols version)
    {
        using TcpListener silent = Listen();
        using X509Certificate2 certificate = OcspResponder.MakeCertificate(PortOf(silent));
        SslServerAuthenticationOptions options = Options(version, OcspResponder.Context(certificate, offline: false));
        using Socket asked = await silent.AcceptSocketAsync(TestContext.Current.CancellationToken).InTime("being asked for a response");

        string said = await ServeAsync(mode, version, asks: true, s => s.HandshakeAsServerAsync(options));

        Assert.Matches(NoResponse, said);
    }

    private static SslServerAuthenticationOptions Options(SslProtocols version, SslStreamCertificateContext? context)
    {
        SslServerAuthenticationOptions options = Handshakes.ServerOptions(version);
        options.ServerCertificateContext = context;
        return options;
    }

    private static SslServerAuthenticationOptions Options(SslProtocols version, string way, X509Certificate2 certificate)
    {
        SslServerAuthenticationOptions options =
            Options(version, way == "offline context" ? OcspResponder.Context(certificate, offline: true) : null);
        options.ServerCertificate = way == "certificate" ? certificate : null;
        options.ServerCertificateSelectionCallback = way == "callback" ? (_, _) => certificate : null;
        return options;
    }

    /// <summary>Serves an openssl s_client, exchanges a line each way with it, and returns its output.</summary>
    private static async Task<string> ServeAsync(TlsMode mode, SslProtocols version, bool asks, Func<SslStream, Task> shake)
    {
        using TemporaryDirectory directory = new();
        using TcpListener listener = Listen();
        using ExternalProgram client = ExternalProgram.Start(
            "openssl",
            directory.FullName,
            ["s_client", "-connect", $"127.0.0.1:{PortOf(listener)}", "-servername", "localhost", "-nocommands",
            version == SslProtocols.Tls12 ? "-tls1_2" : "-tls1_3", "-verify_return_error",
            "-CAfile", Certificates.WriteAuthority(directory.FullName), .. asks ? ["-status"] : Array.Empty<string>()]);
        Socket socket = await listener.AcceptSocketAsync(TestContext.Current.CancellationToken).InTime("s_client to connect");
        await using SslStream server = Modes.Create(mode, new NetworkStream(socket, ownsSocket: true));
        List<string> fallbacks = Fallbacks.Collect();

        await shake(server).InTime($"a handshake with s_client, which says: {client.Errors}");
        Assert.Equal(version, server.SslProtocol);
        Modes.AssertIn(mode, server);
        if (Modes.OnOpenSsl.Contains(mode))
        {
            Assert.Empty(fallbacks);
        }

        await client.Input.WriteAsync("hello\n"u8.ToArray()).InTime("a line for s_client to send");
        await client.Input.FlushAsync().InTime("the line's way to s_client");
        byte[] line = new byte[6];
        await server.ReadExactlyAsync(line).InTime($"a line from s_client, which says: {client.Errors}");
        Assert.Equal("hello\n"u8.ToArray(), line);
        await server.WriteAsync("world\n"u8.ToArray()).InTime("a line to s_client");

        // This ends the program and its output. Without it the program would wait for half a second.
        await server.ShutdownAsync().InTime("close_notify to s_client");
        Assert.Equal(0, await server.ReadAsync(line).InTime("s_client's close_notify"));
        await server.DisposeAsync();
        using StreamReader output = new(client.Output);
        string said = await output.ReadToEndAsync().InTime("the output of s_client");
        Assert.True(await client.ExitAsync() == 0, client.Errors);
        Assert.Contains("world\n", said, StringComparison.Ordinal);
        return said;
    }

    private static TcpListener Listen()
    {
        TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        return listener;
    }

    private static int PortOf(TcpListener listener) => ((IPEndPoint)listener.LocalEndpoint).Port;
}
