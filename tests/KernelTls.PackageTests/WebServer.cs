using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Runs a published web application, whose command line sets its https address, and requests of clients.
/// </summary>
internal sealed class WebServer : IDisposable
{
    private readonly TemporaryDirectory _directory = new();
    private int _connections;

    private WebServer(Func<string[], Application> start)
    {
        (string certificate, string key) = Certificates.WritePem(Certificates.Ecdsa, _directory.FullName);
        Process = start(
        [
            "--Kestrel:Endpoints:Secure:Url=https://127.0.0.1:0",
            $"--Kestrel:Endpoints:Secure:Certificate:Path={certificate}",
            $"--Kestrel:Endpoints:Secure:Certificate:KeyPath={key}",
        ]);
    }

    public Application Process { get; }

    public Uri Address { get; private set; } = null!;

    /// <summary>
    /// Gets how many connections the requests have made, with complete handshakes. HttpClient makes another one if the server ends the first
    /// before it answers, as Kestrel does on a machine that is too slow for its limit.
    /// </summary>
    public int Connections => Volatile.Read(ref _connections);

    /// <summary>Starts the application, and waits until it listens.</summary>
    public static Task<WebServer> StartAsync(string program, params (string, string)[] environment) =>
        StartAsync(arguments => Programs.Start(program, environment, arguments));

    /// <summary>Starts a command, whose standard error becomes a part of its output, in the application's folder.</summary>
    public static Task<WebServer> RunAsync(string directory, string[] command, params (string, string)[] environment) =>
        StartAsync(arguments => Programs.Run(directory, [.. command, .. arguments], environment));

    private static async Task<WebServer> StartAsync(Func<string[], Application> start)
    {
        WebServer server = new(start);
        try
        {
            server.Address = await server.Process.AddressAsync();
            return server;
        }
        catch
        {
            server.Dispose();
            throw;
        }
    }

    /// <summary>Sends a request with the stock client on a separate connection.</summary>
    public async Task<string> GetAsync(string path, string version)
    {
        using SocketsHttpHandler handler = new()
        {
            UseProxy = false,
            SslOptions = { CertificateChainPolicy = Certificates.Trust() },
            PlaintextStreamFilter = (context, _) =>
            {
                Interlocked.Increment(ref _connections);
                return ValueTask.FromResult(context.PlaintextStream);
            },
        };
        using HttpClient client = new(handler)
        {
            DefaultRequestVersion = Version.Parse(version),
            DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Timeout = Limits.Wait,
        };
        return await client.GetStringAsync(new Uri(Address, path)).InTime($"{path} from {Address}");
    }

    public void Dispose()
    {
        Process.Dispose();
        _directory.Dispose();
    }
}
