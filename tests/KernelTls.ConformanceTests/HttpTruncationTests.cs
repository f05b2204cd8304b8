using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests HttpClient with a server that closes without close_notify, as every stock .NET server does: it retries on
/// another connection, and it detects a truncated body whenever HTTP defines the length.
/// </summary>
public class HttpTruncationTests
{
    private const string Good = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    /// <summary>A response that only the end of the connection ends.</summary>
    private const string WithoutLength = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok";

    public static TheoryData<TlsMode> Every => [.. Modes.Every];

    public static TheoryData<TlsMode, string> CutShort => Modes.With(
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
        "HTTP/1.1 200 OK\r\nContent-Le");

    /// <summary>The server closes a kept-alive connection while the second request is in transit.</summary>
    [Theory]
    [MemberData(nameof(Every))]
    public async Task A_request_on_a_connection_that_the_server_closes_is_sent_again_on_another(TlsMode mode)
    {
        string came = await SideBySide.RunAsync(mode, async each =>
        {
            using Listener listener = new();
            Task<int> serving = listener.ServeAsync(
                async first =>
                {
                    await AnswerAsync(first, Good);
                    await ReadHeadAsync(first);
                },
                second => AnswerAsync(second, Good));
            using HttpClient client = NewClient(each);
            string answers = await GetAsync(client, listener.Address) + ", " + await GetAsync(client, listener.Address);
            return $"{answers}: {await serving.InTime("the server to serve two connections")}";
        });
        Assert.Equal("ok, ok: 2", came);
    }

    /// <summary>The server closes an idle connection, and the pool drops it.</summary>
    [Theory]
    [MemberData(nameof(Every))]
    public async Task A_connection_that_the_server_closed_while_it_was_idle_is_not_used(TlsMode mode)
    {
        string came = await SideBySide.RunAsync(mode, async each =>
        {
            using Listener listener = new();
            Task<int> serving = listener.ServeAsync(first => AnswerAsync(first, Good), second => AnswerAsync(second, Good));
            using HttpClient client = NewClient(each);
            string first = await GetAsync(client, listener.Address);
            await listener.FirstClosed.InTime("the server to close its first connection");
            return $"{first}, {await GetAsync(client, listener.Address)}: {await serving.InTime("the server to serve two connections")}";
        });
        Assert.Equal("ok, ok: 2", came);
    }

    [Theory]
    [MemberData(nameof(CutShort))]
    public async Task An_answer_that_is_cut_short_is_an_error(TlsMode mode, string answer)
    {
        string came = await SideBySide.RunAsync(mode, async each =>
        {
            using Listener listener = new();
            Task<int> serving = listener.ServeAsync(stream => AnswerAsync(stream, answer));
            using HttpClient client = NewClient(each);
            string said = await GetAsync(client, listener.Address);
            await serving.InTime("the server");
            return said;
        });
        Assert.Equal("HttpRequestException ResponseEnded", came);
    }

    /// <summary>
    /// Only the end of the connection ends such a body: HTTP cannot detect a truncation, and the stock handler accepts
    /// the body as complete.
    /// </summary>
    [Theory]
    [MemberData(nameof(Every))]
    public async Task A_body_without_a_length_ends_with_the_connection(TlsMode mode)
    {
        string came = await SideBySide.RunAsync(mode, async each =>
        {
            using Listener listener = new();
            Task<int> serving = listener.ServeAsync(stream => AnswerAsync(stream, WithoutLength));
            using HttpClient client = NewClient(each);
            string said = await GetAsync(client, listener.Address);
            await serving.InTime("the server");
            return said;
        });
        Assert.Equal("ok", came);
    }

    /// <summary>An application can choose the error instead of the retry.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Options_that_require_close_notify_make_it_an_error(TlsMode mode)
    {
        using Listener listener = new();
        Task<int> serving = listener.ServeAsync(stream => AnswerAsync(stream, WithoutLength));
        using HttpClient client = NewClient(mode, requireCloseNotify: true);

        Assert.StartsWith(nameof(HttpRequestException), await GetAsync(client, listener.Address), StringComparison.Ordinal);
        await serving.InTime("the server");
    }

    /// <summary>Tests HTTP/2 with raw frames: settings, the head of a response, and a part of its body.</summary>
    [Theory]
    [MemberData(nameof(Every))]
    public async Task An_answer_over_HTTP_2_that_is_cut_short_is_an_error(TlsMode mode)
    {
        string came = await SideBySide.RunAsync(mode, async each =>
        {
            using Listener listener = new();
            Task<int> serving = listener.ServeAsync(async stream =>
            {
                await ReadHttp2RequestAsync(stream);
                byte[] settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
                byte[] status200 = [0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];
                byte[] data = [0, 0, 2, 0, 0, 0, 0, 0, 1, (byte)'o', (byte)'k'];
                await stream.WriteAsync((byte[])[.. settings, .. status200, .. data]);
                await listener.EndSendingAsync();
            });
            using HttpClient client = NewClient(each, version: "2.0");
            string said = await GetAsync(client, listener.Address);
            await serving.InTime("the server");
            return said;
        });
        Assert.StartsWith(nameof(HttpRequestException), came, StringComparison.Ordinal);
    }

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    private static async Task<string> GetAsync(HttpClient client, Uri address)
    {
        try
        {
            return await client.GetStringAsync(address).InTime("the answer");
        }
        catch (HttpRequestException e)
        {
            return $"{nameof(HttpRequestException)} {e.HttpRequestError}";
        }
    }

    private static HttpClient NewClient(TlsMode mode, bool requireCloseNotify = false, string version = "1.1")
    {
        SocketsHttpHandler handler = new() { UseProxy = false };
        handler.SslOptions.CertificateChainPolicy = Certificates.Trust();
        if (mode != TlsMode.Stock)
        {
            KtlsOptions options = Modes.OptionsOf(mode);
            options.RequireCloseNotify = requireCloseNotify;
            handler.UseKernelTls(options);
        }

        return new HttpClient(handler)
        {
            DefaultRequestVersion = Version.Parse(version),
            DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact,
        };
    }

    private static async Task AnswerAsync(SslStream stream, string answer)
    {
        await ReadHeadAsync(stream);
        await stream.WriteAsync(Encoding.ASCII.GetBytes(answer));
    }

    private static async Task ReadHeadAsync(SslStream stream)
    {
        byte[] one = new byte[1];
        for (int last = 0; last != 0x0D0A0D0A; last = (last << 8) | one[0])
        {
            Assert.Equal(1, await stream.ReadAsync(one).InTime("the head of a request"));
        }
    }

    /// <summary>Reads the connection preface (RFC 9113, 3.4) and all frames up to the first request's head.</summary>
    private static async Task ReadHttp2RequestAsync(SslStream stream)
    {
        const byte headers = 1;
        byte[] preface = new byte[24];
        await stream.ReadExactlyAsync(preface).InTime("the preface of HTTP/2");
        for (byte[] frame = new byte[9]; frame[3] != headers;)
        {
            await stream.ReadExactlyAsync(frame).InTime("a frame of HTTP/2");
            await stream.ReadExactlyAsync(new byte[(frame[1] << 8) | frame[2]]).InTime("its contents");
        }
    }

    /// <summary>
    /// A server of stock streams: runs one action for each connection and disposes it, which sends no close_notify.
    /// </summary>
    private sealed class Listener : IDisposable
    {
        private readonly Socket _socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        private readonly TaskCompletionSource _firstClosed = new(TaskCreationOptions.RunContinuationsAsynchronously);

        public Listener()
        {
            _socket.Bind(new IPEndPoint(IPAddress.Loopback, 0));
            _socket.Listen();
            Address = new Uri($"https://localhost:{((IPEndPoint)_socket.LocalEndPoint!).Port}/");
        }

        public Uri Address { get; }

        private Socket? Accepted { get; set; }

        public Task FirstClosed => _firstClosed.Task;

        /// <summary>Serves connections and returns their number.</summary>
        public async Task<int> ServeAsync(params Func<SslStream, Task>[] work)
        {
            int served = 0;
            foreach (Func<SslStream, Task> each in work)
            {
                Accepted = await _socket.AcceptAsync().InTime("a connection of HttpClient");
                await using SslStream stream = new(new NetworkStream(Accepted, ownsSocket: true));
                SslServerAuthenticationOptions options = Handshakes.ServerOptions(SslProtocols.Tls13);
                options.ApplicationProtocols = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11];
                await stream.AuthenticateAsServerAsync(options).InTime("the server's handshake");
                await each(stream);
                await stream.DisposeAsync();
                served++;
                _firstClosed.TrySetResult();
            }

            return served;
        }

        /// <summary>
        /// Sends FIN, and receives until the client closes the connection. A closed socket would answer the client's next
        /// frame with a reset, and the client's error would depend on what it meets first.
        /// </summary>
        public async Task EndSendingAsync()
        {
            Accepted!.Shutdown(SocketShutdown.Send);
            byte[] buffer = new byte[1000];
            try
            {
                while (await Accepted.ReceiveAsync(buffer).InTime("the client to close the connection") > 0)
                {
                }
            }
            catch (SocketException e) when (e.SocketErrorCode == SocketError.ConnectionReset)
            {
                // The client has closed it, too.
            }
        }

        public void Dispose() => _socket.Dispose();
    }
}
