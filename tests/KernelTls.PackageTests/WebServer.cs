using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Runs a published web application, whose command line sets its https address, and requests of clients.
/// </summary>
internal sealed class WebServer : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    private WebServer(string program, (string, string)[] environment)
    {
        (string certificate, string key) = Certificates.WritePem(Certificates.Ecdsa, _directory.FullName);
        Process = Programs.Start(
            program,
            environment,
            "--Kestrel:Endpoints:Secure:Url=https://127.0.0.1:0",
            $"--Kestrel:Endpoints:Secure:Certificate:Path={certificate}",
            $"--Kestrel:Endpoints:Secure:Certificate:KeyPath={key}");
    }

    public Application Process { get; }

    public Uri Address { get; private set; } = null!;

    /// <summary>Starts the application, and waits until it listens.</summary>
    public static async Task<WebServer> StartAsync(string program, params (string, string)[] environment)
    {
        WebServer server = new(program, environment);
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
        using SocketsHttpHandler handler = new() { UseProxy = false, SslOptions = { CertificateChainPolicy = Certificates.Trust() } };
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
