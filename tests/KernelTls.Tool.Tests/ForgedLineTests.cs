using System.Globalization;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Tests that the content of a peer's certificate can neither create a line nor reverse one.</summary>
public class ForgedLineTests
{
    private const string Hostile = "bank.example\nsend         Kernel\r\ncertificate  CN=trusted\u2028next\u202Eevil\u2066\u001B[31m\ttab";

    [Theory]
    [InlineData("connect", "")]
    [InlineData("connect", "--json")]
    [InlineData("probe", "")]
    [InlineData("probe", "--json")]
    public async Task A_hostile_name_stays_in_its_line(string command, string json)
    {
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen();
        using CancellationTokenSource stop = new();
        Task serving = ServeAsync(listener, stop.Token);
        string[] arguments =
        [
            command, $"127.0.0.1:{((IPEndPoint)listener.LocalEndPoint!).Port}", "--insecure", "--timeout", $"{(int)Limits.Wait.TotalSeconds}",
            .. command == "probe" ? new[] { "--wait", "1" } : [], .. json == "" ? Array.Empty<string>() : [json],
        ];
        Ktls.Result result = await Ktls.RunAsync(arguments);
        await stop.CancelAsync();
        await serving.InTime("the server to end");

        // The output of connect is the peer's data, unchanged.
        string said = command == "connect" ? result.Errors : result.Output + result.Errors;
        Assert.Contains("bank.example", said, StringComparison.Ordinal);
        Assert.DoesNotContain(said, c => c != '\n' && char.GetUnicodeCategory(c) is UnicodeCategory.Control or UnicodeCategory.Format
            or UnicodeCategory.LineSeparator or UnicodeCategory.ParagraphSeparator);
        Assert.DoesNotContain("\nsend         Kernel\n", said, StringComparison.Ordinal);
        Assert.DoesNotContain("\ncertificate  CN=trusted", said, StringComparison.Ordinal);
    }

    /// <summary>Serves until canceled: a handshake, and the end.</summary>
    private static async Task ServeAsync(Socket listener, CancellationToken cancellationToken)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        X500DistinguishedNameBuilder name = new();
        name.AddCommonName(Hostile);
        using X509Certificate2 made = new CertificateRequest(name.Build(), key, HashAlgorithmName.SHA256)
            .CreateSelfSigned(DateTimeOffset.UtcNow.AddDays(-1), DateTimeOffset.UtcNow.AddDays(1));
        using X509Certificate2 certificate = X509CertificateLoader.LoadPkcs12(made.Export(X509ContentType.Pfx), null);
        try
        {
            while (true)
            {
                Socket accepted = await listener.AcceptAsync(cancellationToken);
                await using SslStream stream = new(new NetworkStream(accepted, ownsSocket: true));
                try
                {
                    await stream.AuthenticateAsServerAsync(
                        new SslServerAuthenticationOptions { ServerCertificate = certificate }, cancellationToken);
                    await stream.ReadAsync(new byte[1000], cancellationToken);
                    await stream.WriteAsync("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"u8.ToArray(), cancellationToken);
                    await stream.ShutdownAsync();
                }
                catch (Exception e) when (e is IOException or System.Security.Authentication.AuthenticationException)
                {
                    // The tool has closed the connection, as probe does after a handshake.
                }
            }
        }
        catch (OperationCanceledException)
        {
            // Canceled at the end of the test.
        }
    }
}
