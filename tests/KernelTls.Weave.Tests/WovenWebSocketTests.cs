using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Net.WebSockets;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.Weave.Tests;

/// <summary>
/// Tests a woven program that uses ClientWebSocket, in a separate process, against a stock server: its connections are the library's, except
/// with options that belong to a handler of ClientWebSocket, and everything else is as without weaving.
/// </summary>
[Trait("cell", "programs")]
public sealed partial class WovenWebSocketTests : IDisposable
{
    private const int Connections = 6;
    private const int Reached = 4;

    /// <summary>The connections that the trial at the start of a process puts into the kernel (docs/troubleshooting.md).</summary>
    private const int Trial = 11;

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData(null)]
    [InlineData("0")]
    public async Task With_the_toggle_off_or_unset_it_is_the_stock_one(string? toggle)
    {
        (string, string)[] environment = toggle is null ? [] : [(Application.KernelVariable, toggle)];
        string stock = await RunAsync(Program().Image, Connections, environment);

        Assert.Equal(Expected(""), Normalize(stock));
        Assert.Equal(Expected(""), Normalize(await RunAsync(Program().Weave().Image!, Connections, environment)));
    }

    [Fact]
    public async Task On_OpenSSL_its_connections_are_the_librarys() => Assert.Equal(
        Expected(" OpenSsl OpenSsl System.Net.WebSockets.Client"),
        Normalize(await RunAsync(Program().Weave().Image!, Connections, (Application.DirectVariable, "1"))));

    [Fact]
    public async Task With_the_toggle_its_connections_are_in_the_kernel_or_say_why_not()
    {
        Assert.True(KtlsPlatform.Probe().IsSupported || !Cell.KtlsExpected);
        string report = !KtlsPlatform.Probe().IsSupported ? $" {KtlsPlatform.Probe().NotSupportedReason}"
            : KtlsPlatform.Probe().OpenSslVersion < new Version(3, 2) ? " Kernel OpenSsl"
            : " Kernel Kernel";
        TlsStatistics before = KtlsPlatform.Probe().IsSupported ? TlsStatistics.Read() : default;

        Assert.Equal(
            Expected($"{report} System.Net.WebSockets.Client"),
            Normalize(await RunAsync(Program().Weave().Image!, Connections, (Application.KernelVariable, "1"))));

        TlsStatistics after = KtlsPlatform.Probe().IsSupported ? TlsStatistics.Read() : default;
        Assert.Equal(KtlsPlatform.Probe().IsSupported ? Trial + Reached : 0, after.SendSoftware - before.SendSoftware);
    }

    /// <summary>Some of the messages differ, as everywhere (docs/differences.md).</summary>
    [Fact]
    public async Task An_unknown_certificate_is_the_same_error()
    {
        string[] stock = await UntrustedAsync(Program().Image);
        string[] woven = await UntrustedAsync(Program().Weave().Image!);

        Assert.All(stock, line => Assert.Contains("AuthenticationException (The remote certificate is invalid", line, StringComparison.Ordinal));
        Assert.All(woven, line => Assert.Contains("AuthenticationException (The remote certificate is invalid", line, StringComparison.Ordinal));
        Assert.Equal(stock.Select(Types), woven.Select(Types));

        static string Types(string line) => string.Join(' ', Regex.Matches(line, @"\w+Exception(?= \()").Select(m => m.Value));

        async Task<string[]> UntrustedAsync(byte[] image) =>
            [.. (await RunAsync(image, 0, ("SSL_CERT_FILE", _directory["none"]), (Application.DirectVariable, "1"))).Split('\n')[..Reached]];
    }

    private static Compiled Program() => WovenProgram.Compile("WebSocket.cs", "WebSocket");

    private static string Expected(string report) => $"""
        default: ping  Closed{report}
        no proxy: ping  Closed{report}
        header: ping some Closed{report}
        delegate: ping  Closed{report}
        callback: ping  Closed
        cookies: ping  Closed
        refused: WebSocketException (Unable to connect to the remote server) HttpRequestException (Connection refused (localhost:PORT)) SocketException (Connection refused) Closed
        null: ArgumentNullException (Value cannot be null. (Parameter 'uri')) None

        """;

    private static string Normalize(string said) => Port().Replace(said, "localhost:PORT");

    /// <summary>Runs the program against a server of so many connections; the certificates of the rest are refused.</summary>
    private async Task<string> RunAsync(byte[] image, int connections, params (string, string)[] environment)
    {
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        using ReservedPort nothing = new();
        using Application application = WovenProgram.Start(
            _directory,
            "WebSocket",
            image,
            [$"{((IPEndPoint)listener.LocalEndpoint).Port}", $"{nothing.Number}"],
            [("SSL_CERT_FILE", Certificates.WriteAuthority(_directory.FullName)), ("SSL_CERT_DIR", _directory["none"]), .. environment]);
        if (connections == 0)
        {
            _ = RefuseAsync(listener);
        }

        for (int i = 0; i < connections; i++)
        {
            await ServeAsync(listener);
        }

        return await application.SucceedAsync();
    }

    /// <summary>Serves one connection: the handshakes of TLS and of RFC 6455, and an answer that is what was sent.</summary>
    private static async Task ServeAsync(TcpListener listener)
    {
        using TcpClient connection = await listener.AcceptTcpClientAsync().InTime("the program to connect");
        await using SslStream stream = new(connection.GetStream());
        await stream.AuthenticateAsServerAsync(new SslServerAuthenticationOptions { ServerCertificateContext = Certificates.EcdsaContext }).InTime("the handshake");
        byte[] buffer = new byte[4096];
        int length = 0;
        while (!buffer.AsSpan(0, length).EndsWith("\r\n\r\n"u8))
        {
            int read = await stream.ReadAsync(buffer.AsMemory(length)).AsTask().InTime("the request");
            Assert.NotEqual(0, read);
            length += read;
        }

        string request = Encoding.ASCII.GetString(buffer, 0, length);
        string key = Key().Match(request).Groups[1].Value;
#pragma warning disable CA5350 // RFC 6455, section 4.2.2
        string accept = Convert.ToBase64String(SHA1.HashData(Encoding.ASCII.GetBytes(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")));
#pragma warning restore CA5350
        string protocol = request.Contains("X-Some: header", StringComparison.Ordinal) ? "Sec-WebSocket-Protocol: some\r\n" : "";
        await stream.WriteAsync(Encoding.ASCII.GetBytes(
            $"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n{protocol}\r\n")).AsTask().InTime("the response");
        using WebSocket socket = WebSocket.CreateFromStream(stream, new WebSocketCreationOptions { IsServer = true });
        WebSocketReceiveResult received = await socket.ReceiveAsync(buffer, CancellationToken.None).InTime("the message");
        await socket.SendAsync(buffer.AsMemory(0, received.Count), received.MessageType, true, CancellationToken.None).AsTask().InTime("the answer");
        await socket.ReceiveAsync(buffer, CancellationToken.None).InTime("the close");
        await socket.CloseAsync(WebSocketCloseStatus.NormalClosure, "done", CancellationToken.None).InTime("the answer to it");
    }

    /// <summary>Offers a certificate that the program does not know, until the listener is disposed.</summary>
    private static async Task RefuseAsync(TcpListener listener)
    {
        while (true)
        {
            using TcpClient connection = await listener.AcceptTcpClientAsync();
            await using SslStream stream = new(connection.GetStream());
            try
            {
                await stream.AuthenticateAsServerAsync(new SslServerAuthenticationOptions { ServerCertificateContext = Certificates.EcdsaContext });
                _ = await stream.ReadAsync(new byte[1]);
            }
            catch (Exception e) when (e is IOException or System.Security.Authentication.AuthenticationException)
            {
                // As the program does it.
            }
        }
    }

    [GeneratedRegex(@"localhost:\d+")]
    private static partial Regex Port();

    [GeneratedRegex(@"Sec-WebSocket-Key: (\S+)")]
    private static partial Regex Key();
}
