// Talks TLS with itself in all the ways that are woven, and prints what became of each connection. Its argument is a certificate.
using System;
using System.Diagnostics.Tracing;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication.ExtendedProtection;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

public static class Sample
{
    public static async Task Main(string[] arguments)
    {
        using Listener events = new();
        using X509Certificate2 certificate = X509CertificateLoader.LoadPkcs12FromFile(arguments[0], null);
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        int port = ((IPEndPoint)listener.LocalEndpoint).Port;

        foreach (string way in (string[])["options", "name", "delegate", "subclass", "synchronous", "truncated"])
        {
            Task<string> server = Task.Run(() => ServeAsync(listener, certificate, close: way != "truncated"));
            string client = await TalkAsync(way, port);
            Console.WriteLine($"{way}: {client}; {await server}");
        }

        Uri address = new($"https://localhost:{port}/");
        HttpClientHandler handler = new()
        {
            ServerCertificateCustomValidationCallback = (request, _, _, _) => request.RequestUri == address,
        };
        await GetAsync("HttpClientHandler", handler);
        SocketsHttpHandler sockets = new() { SslOptions = { RemoteCertificateValidationCallback = (_, _, _, _) => true } };
        await GetAsync($"SocketsHttpHandler {sockets.ConnectCallback is null}", sockets);
        int connected = 0;
        SocketsHttpHandler connecting = new()
        {
            SslOptions = { RemoteCertificateValidationCallback = (_, _, _, _) => true },
            ConnectCallback = async (context, token) =>
            {
                Socket socket = new(SocketType.Stream, ProtocolType.Tcp);
                await socket.ConnectAsync(context.DnsEndPoint, token);
                connected++;
                return new NetworkStream(socket, ownsSocket: true);
            },
        };
        await GetAsync("ConnectCallback", connecting);
        Console.WriteLine($"connected by it: {connected}, it is the application's: {connecting.ConnectCallback.Method.DeclaringType.Assembly == typeof(Sample).Assembly}");
        try
        {
            Task<string> server = Task.Run(() => AnswerAsync(listener, certificate));
            await new HttpClient().GetStringAsync(address);
        }
        catch (HttpRequestException e)
        {
            Console.WriteLine($"HttpClient: {e.InnerException.GetType().Name}");
        }

        async Task GetAsync(string name, HttpMessageHandler by)
        {
            events.Library = "nobody's";
            Task<string> server = Task.Run(() => AnswerAsync(listener, certificate));
            using HttpClient client = new(by);
            Console.WriteLine($"{name}: {await client.GetStringAsync(address)} {events.Library}; {await server}");
        }
    }

    private static async Task<string> TalkAsync(string way, int port)
    {
        using TcpClient connection = new();
        await connection.ConnectAsync(IPAddress.Loopback, port);
        SslClientAuthenticationOptions options = new() { TargetHost = "localhost" };
        await using SslStream stream = way == "subclass"
            ? new Mine(connection.GetStream())
            : new SslStream(connection.GetStream(), false, (_, _, _, _) => true);
        switch (way)
        {
            case "name":
                await stream.AuthenticateAsClientAsync("localhost");
                break;
            case "delegate":
                Func<SslClientAuthenticationOptions, CancellationToken, Task> shake = stream.AuthenticateAsClientAsync;
                await shake(options, default);
                break;
            case "synchronous":
                stream.AuthenticateAsClient(options);
                break;
            default:
                await stream.AuthenticateAsClientAsync(options);
                break;
        }

        await stream.WriteAsync(Encoding.ASCII.GetBytes("ping"));
        byte[] answer = new byte[100];
        int read = await stream.ReadAtLeastAsync(answer, 5, throwOnEndOfStream: false);
        string binding = $"{stream.TransportContext.GetChannelBinding(ChannelBindingKind.Endpoint)?.Size}";
        return $"{Encoding.ASCII.GetString(answer, 0, read)} {binding} {Describe(stream)}{(ExpectsNoPadding(connection.Client) ? " without padding" : "")}";
    }

    // SOL_TLS and TLS_RX_EXPECT_NO_PAD of linux/tls.h, as the kernel reports them.
    private static bool ExpectsNoPadding(Socket socket)
    {
        byte[] value = new byte[sizeof(int)];
        try
        {
            _ = socket.GetRawSocketOption(282, 4, value);
        }
        catch (Exception)
        {
            return false;
        }

        return BitConverter.ToInt32(value) != 0;
    }

    private static async Task<string> ServeAsync(TcpListener listener, X509Certificate2 certificate, bool close)
    {
        using TcpClient connection = await listener.AcceptTcpClientAsync();
        SslStream stream = new(connection.GetStream(), leaveInnerStreamOpen: true);
        await stream.AuthenticateAsServerAsync(new SslServerAuthenticationOptions { ServerCertificate = certificate });
        byte[] ping = new byte[4];
        await stream.ReadExactlyAsync(ping);
        await stream.WriteAsync(ping);
        if (close)
        {
            await stream.ShutdownAsync();
        }

        return Describe(stream);
    }

    private static async Task<string> AnswerAsync(TcpListener listener, X509Certificate2 certificate)
    {
        using TcpClient connection = await listener.AcceptTcpClientAsync();
        await using SslStream stream = new(connection.GetStream());
        await stream.AuthenticateAsServerAsync(certificate);
        byte[] request = new byte[4096];
        _ = await stream.ReadAsync(request);
        await stream.WriteAsync(Encoding.ASCII.GetBytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"));
        return Describe(stream);
    }

    private static string Describe(SslStream stream)
    {
        Type type = stream.GetType();
        while (type.Assembly == typeof(Sample).Assembly || type.IsGenericType)
        {
            type = type.BaseType;
        }

        return $"{type.Name} {type.GetProperty("Offload")?.GetValue(stream)}".TrimEnd();
    }

    private sealed class Mine(System.IO.Stream inner) : SslStream(inner, false, (_, _, _, _) => true)
    {
        public override ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default) =>
            base.ReadAsync(buffer, cancellationToken);

        public override ValueTask WriteAsync(ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default) =>
            base.WriteAsync(buffer, cancellationToken);
    }

    /// <summary>Records the owner of the last client that the library created.</summary>
    private sealed class Listener : EventListener
    {
        public string Library { get; set; } = "";

        protected override void OnEventSourceCreated(EventSource eventSource)
        {
            if (eventSource.Name == "KernelTls")
            {
                EnableEvents(eventSource, EventLevel.Informational);
            }
        }

        protected override void OnEventWritten(EventWrittenEventArgs eventData)
        {
            if (eventData.EventName is "HandshakeCompleted" or "Fallback" && eventData.Payload[0] is false)
            {
                Library = (string)eventData.Payload[^1];
            }
        }
    }
}
