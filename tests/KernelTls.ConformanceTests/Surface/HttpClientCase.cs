using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Reflection;
using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Describes a request of HttpClient to a server that is an SslStream, or a raw socket.</summary>
/// <param name="Name">The name.</param>
/// <param name="Version">The TLS version of the server.</param>
/// <param name="IsHttp2">Whether to use HTTP/2 instead of HTTP/1.1.</param>
internal sealed record HttpClientCase(string Name, SslProtocols Version, bool IsHttp2)
{
    /// <summary>The members of an exception that say where it was thrown, or repeat what is compared.</summary>
    private static readonly string[] s_notCompared = ["StackTrace", "TargetSite", "Source", "Data", "InnerException"];

    /// <summary>Gets the action that changes the client.</summary>
    public Action<SocketsHttpHandler>? Client { get; init; }

    /// <summary>Gets the action that changes the server's options.</summary>
    public Action<SslServerAuthenticationOptions>? Server { get; init; }

    /// <summary>Gets what the server does instead of a handshake, when the ClientHello has arrived.</summary>
    public Func<Socket, Task>? RawServer { get; init; }

    /// <summary>Gets what the server does when the request has arrived.</summary>
    public Func<SslStream, Socket, Task>? Answer { get; init; }

    /// <summary>Gets a limit of the whole request that the server exceeds.</summary>
    public TimeSpan? Timeout { get; init; }

    public override string ToString() =>
        $"HTTP/{(IsHttp2 ? "2" : "1.1")}, {(Version == SslProtocols.Tls12 ? "TLS 1.2" : "TLS 1.3")}, {Name}";

    /// <summary>Runs the case and returns what the caller of HttpClient sees.</summary>
    public async Task<Surface> RunAsync(TlsMode mode)
    {
        Surface surface = new();
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen();
        using CancellationTokenSource stop = new();
        Task serving = ServeAsync(listener, stop.Token);
        using (HttpClient client = NewClient(mode))
        {
            try
            {
                using HttpResponseMessage response = await client
                    .GetAsync(new Uri($"https://localhost:{((IPEndPoint)listener.LocalEndPoint!).Port}/")).InTime($"{this}: the response");
                surface.Add("response", $"{(int)response.StatusCode} {response.Version} {await response.Content.ReadAsStringAsync()}");
            }
            catch (Exception e) when (e is not (TimeoutException or Xunit.Sdk.XunitException))
            {
                surface.Add("exception", SurfaceText.Types(e));
                foreach (PropertyInfo property in e.GetType().GetProperties().Where(p => !s_notCompared.Contains(p.Name)))
                {
                    surface.Add(property.Name, SurfaceText.Answer(() => property.GetValue(e))
                        .Replace($":{((IPEndPoint)listener.LocalEndPoint!).Port}", ":port", StringComparison.Ordinal));
                }
            }
        }

        await stop.CancelAsync();
        await serving.InTime($"{this}: the server to end");
        return surface;
    }

    /// <summary>Serves every connection: a failed request may be repeated on a new one.</summary>
    private async Task ServeAsync(Socket listener, CancellationToken stop)
    {
        List<Task> connections = [];
        List<Socket> sockets = [];
        try
        {
            while (true)
            {
                Socket socket = await listener.AcceptAsync(stop);
                connections.Add(ServeAsync(socket));
                sockets.Add(socket);
            }
        }
        catch (OperationCanceledException)
        {
            // HttpClient leaves a connection attempt alone for seconds after the request that it was for.
            sockets.ForEach(static s => s.Dispose());
            await Task.WhenAll(connections);
        }
    }

    private async Task ServeAsync(Socket socket)
    {
        await using SslStream stream = new(new NetworkStream(socket, ownsSocket: true));
        try
        {
            if (RawServer is not null)
            {
                // A client with a short limit may give up first.
                if (await socket.ReceiveAsync(new byte[16 * 1024]) > 0)
                {
                    await RawServer(socket);
                }

                return;
            }

            SslServerAuthenticationOptions options = Handshakes.ServerOptions(Version);
            options.ApplicationProtocols = IsHttp2 ? [SslApplicationProtocol.Http2] : null;
            Server?.Invoke(options);
            await stream.AuthenticateAsServerAsync(options);
            byte[] request = new byte[16 * 1024];
            if (await stream.ReadAsync(request) > 0)
            {
                await (Answer?.Invoke(stream, socket) ?? stream.WriteAsync(Encoding.ASCII.GetBytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")).AsTask());
            }

            while (await stream.ReadAsync(request) > 0)
            {
            }
        }
        catch (Exception e) when (e is IOException or AuthenticationException or SocketException or ObjectDisposedException or InvalidOperationException)
        {
            // The client has ended the connection, or the test has ended.
        }
    }

    private HttpClient NewClient(TlsMode mode)
    {
        // A case that resumed the session of another one would show what a resumed connection shows, and only sometimes.
        SocketsHttpHandler handler = new()
        {
            UseProxy = false,
            SslOptions = { CertificateChainPolicy = Certificates.Trust(), AllowTlsResume = false },
        };
        Client?.Invoke(handler);
        if (mode != TlsMode.Stock)
        {
            handler.UseKernelTls(Modes.OptionsOf(mode));
        }

        return new HttpClient(handler)
        {
            DefaultRequestVersion = IsHttp2 ? HttpVersion.Version20 : HttpVersion.Version11,
            DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Timeout = Timeout ?? Limits.Wait,
        };
    }
}
