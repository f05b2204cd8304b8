using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Lists the requests whose results are compared.</summary>
internal static class HttpClientCases
{
    private const string Cut = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok";

    private static readonly TimeSpan s_tooShort = TimeSpan.FromMilliseconds(Cell.IsLab ? 400 : 100);
    private static readonly SslProtocols[] s_versions = [SslProtocols.Tls12, SslProtocols.Tls13];
    private static readonly bool[] s_either = [false, true];

    private static readonly Lazy<HttpClientCase[]> s_all = new(() =>
        [.. from version in s_versions from isHttp2 in s_either from each in Of(version, isHttp2) select each]);

    public static IReadOnlyList<HttpClientCase> All => s_all.Value;

    private static IEnumerable<HttpClientCase> Of(SslProtocols version, bool isHttp2)
    {
        yield return new("refused: the name", version, isHttp2)
        {
            Server = s => s.ServerCertificateContext = Certificates.Context(Certificates.WrongName),
        };
        yield return new("refused: the authority", version, isHttp2) { Client = h => h.SslOptions.CertificateChainPolicy!.CustomTrustStore.Clear() };
        yield return new("refused by the callback", version, isHttp2)
        {
            Client = h => h.SslOptions.RemoteCertificateValidationCallback = (_, _, _, _) => false,
        };
        yield return new("refused by the callback's exception", version, isHttp2)
        {
            Client = h => h.SslOptions.RemoteCertificateValidationCallback = (_, _, _, _) => throw new InvalidOperationException("on purpose"),
        };
        yield return new("no version in common", version, isHttp2)
        {
            Client = h => h.SslOptions.EnabledSslProtocols = version == SslProtocols.Tls12 ? SslProtocols.Tls13 : SslProtocols.Tls12,
        };
        yield return new("a server that ends in the handshake", version, isHttp2) { RawServer = Do(s => s.Shutdown(SocketShutdown.Send)) };
        yield return new("a server that resets in the handshake", version, isHttp2) { RawServer = Do(s => s.Close(0)) };
        yield return new("a server that sends an alert", version, isHttp2) { RawServer = s => s.SendAsync(new byte[] { 21, 3, 3, 0, 2, 2, 40 }) };
        yield return new("a server that sends text", version, isHttp2) { RawServer = s => s.SendAsync("HTTP/1.1 400 Bad Request\r\n\r\n"u8.ToArray()) };
        yield return new("a server that says nothing, the request's limit", version, isHttp2)
        {
            RawServer = SurfaceStreams.ToEndAsync,
            Timeout = s_tooShort,
        };
        yield return new("a server that says nothing, the connection's limit", version, isHttp2)
        {
            RawServer = SurfaceStreams.ToEndAsync,
            Client = h => h.ConnectTimeout = s_tooShort,
        };
        if (isHttp2)
        {
            yield return new("a server without HTTP/2", version, isHttp2) { Server = s => s.ApplicationProtocols = null };
            // What follows meets HttpClient's HTTP/2 at any point of its start, with the stock stream as well.
            yield break;
        }

        yield return new("a server that ends without an answer", version, isHttp2) { Answer = (_, socket) => Do(s => s.Shutdown(SocketShutdown.Send))(socket) };
        yield return new("a server that resets without an answer", version, isHttp2) { Answer = (_, socket) => Do(s => s.Close(0))(socket) };
        yield return new("a server that sends close_notify without an answer", version, isHttp2) { Answer = (stream, _) => stream.ShutdownAsync() };
        yield return new("a server that answers with a record that is no TLS", version, isHttp2)
        {
            Answer = (_, socket) => socket.SendAsync("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"u8.ToArray()),
        };
        yield return new("an answer", version, isHttp2);
        yield return new("a body that is cut by FIN", version, isHttp2)
        {
            Answer = async (stream, socket) =>
        {
            await stream.WriteAsync(Encoding.ASCII.GetBytes(Cut));
            socket.Shutdown(SocketShutdown.Send);
        }
        };
        yield return new("a body that is cut by close_notify", version, isHttp2)
        {
            Answer = async (stream, _) =>
        {
            await stream.WriteAsync(Encoding.ASCII.GetBytes(Cut));
            await stream.ShutdownAsync();
        }
        };
    }

    private static Func<Socket, Task> Do(Action<Socket> work) => socket =>
    {
        work(socket);
        return Task.CompletedTask;
    };
}
