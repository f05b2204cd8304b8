using System.Diagnostics.Tracing;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

// A program whose TLS is all stock: an HttpClient, and a server on SslStream. It knows nothing of kernel TLS.
using Reports reports = new();
using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
using X509Certificate2 certificate = new CertificateRequest("CN=localhost", key, HashAlgorithmName.SHA256)
    .CreateSelfSigned(DateTimeOffset.Now.AddDays(-1), DateTimeOffset.Now.AddDays(1));
using TcpListener listener = new(IPAddress.Loopback, 0);
listener.Start();
Task serving = ServeAsync();
using HttpClient client = new(new SocketsHttpHandler { SslOptions = { RemoteCertificateValidationCallback = (_, _, _, _) => true } });
await client.GetStringAsync($"https://127.0.0.1:{((IPEndPoint)listener.LocalEndpoint).Port}/");
await serving;

// The reports are written by the thread pool, before their events.
if (Environment.GetEnvironmentVariable("DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL") == "1" && !reports.Both.Wait(TimeSpan.FromSeconds(30)))
{
    Console.WriteLine("Waited 30 s for both reports.");
}

string[] loaded = [.. AppDomain.CurrentDomain.GetAssemblies().Select(a => a.GetName().Name!).Where(n => n.StartsWith("KernelTls"))];
Console.WriteLine($"loaded: {string.Join(' ', loaded)}");

async Task ServeAsync()
{
    using TcpClient accepted = await listener.AcceptTcpClientAsync();
    await using SslStream stream = new(accepted.GetStream());
    await stream.AuthenticateAsServerAsync(certificate);
    await stream.WriteAsync("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"u8.ToArray());
    await stream.ShutdownAsync();
}

internal sealed class Reports : EventListener
{
    public CountdownEvent Both { get; } = new(2);

    protected override void OnEventSourceCreated(EventSource eventSource)
    {
        if (eventSource.Name == "KernelTls")
        {
            EnableEvents(eventSource, EventLevel.Warning);
        }
    }

    protected override void OnEventWritten(EventWrittenEventArgs eventData)
    {
        if (eventData.EventName == "StockHandshake")
        {
            Both.Signal();
        }
    }
}
