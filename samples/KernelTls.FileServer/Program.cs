// Serves the files of a directory over HTTPS on kernel TLS. The page at / shows the data paths of each connection live.
//
//   dotnet run -- --directory /srv/files --address 127.0.0.1 --port 8443
using System.Collections.Concurrent;
using System.Globalization;
using System.Net;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls;
using KernelTls.AspNetCore;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.Extensions.FileProviders;

const string Page = """
    <!DOCTYPE html>
    <html lang="en">
    <head>
      <meta charset="utf-8">
      <title>KernelTls</title>
      <style>
        body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
        table { border-collapse: collapse; width: 100%; }
        th, td { border-bottom: 1px solid #ccc; padding: .3rem .6rem; text-align: left; }
        td.kernel { color: #06702c; font-weight: bold; }
        #lost { color: #a00; }
      </style>
    </head>
    <body>
      <h1>KernelTls</h1>
      <p><a href="/files/">The files</a></p>
      <h2>Open connections</h2>
      <table>
        <thead><tr><th>Connection</th><th>Client</th><th>Protocol</th><th>Cipher</th><th>Sending</th><th>Receiving</th></tr></thead>
        <tbody id="connections"></tbody>
      </table>
      <h2>The kernel's counters</h2>
      <p id="none" hidden>This kernel has no TLS: there is no /proc/net/tls_stat.</p>
      <table><tbody id="kernel"></tbody></table>
      <p id="lost" hidden>The server does not answer.</p>
      <script>
        const find = id => document.getElementById(id);
        const row = values => {
          const line = document.createElement("tr");
          for (const value of values) {
            const cell = line.insertCell();
            cell.textContent = value;
            cell.className = value === "Kernel" || value === "Hardware" ? "kernel" : "";
          }
          return line;
        };
        const show = async () => {
          try {
            const status = await (await fetch("/status", { cache: "no-store" })).json();
            find("connections").replaceChildren(
              ...status.connections.map(c => row([c.id, c.client, c.protocol, c.cipher, c.send, c.receive])));
            find("kernel").replaceChildren(...Object.entries(status.kernel).map(row));
            find("none").hidden = Object.keys(status.kernel).length > 0;
            find("lost").hidden = true;
          } catch {
            find("lost").hidden = false;
          }
          setTimeout(show, 1000);
        };
        show();
      </script>
    </body>
    </html>
    """;

WebApplicationBuilder builder = WebApplication.CreateBuilder(args);
ConfigurationManager configuration = builder.Configuration;
ConcurrentDictionary<string, object> connections = new();

builder.WebHost.UseKernelTls().ConfigureKestrel(kestrel => kestrel.Listen(
    IPAddress.Parse(configuration["address"] ?? "127.0.0.1"),
    configuration.GetValue("port", 8443),
    endpoint =>
    {
        endpoint.UseHttps(https =>
        {
            if (!configuration.GetSection("Kestrel:Certificates:Default").Exists())
            {
                https.ServerCertificate = CreateCertificate();
            }
        });
        endpoint.Use(Track);
    }));
builder.Services.AddDirectoryBrowser();

WebApplication application = builder.Build();
application.MapGet("/", () => Results.Text(Page, "text/html"));
application.MapGet("/status", () => new
{
    Connections = connections.OrderBy(one => one.Key, StringComparer.Ordinal).Select(one => one.Value),
    Kernel = ReadCounters(),
});
application.UseFileServer(new FileServerOptions
{
    RequestPath = "/files",
    FileProvider = new PhysicalFileProvider(Path.GetFullPath(configuration["directory"] ?? ".")),
    EnableDirectoryBrowsing = true,
    StaticFileOptions = { ServeUnknownFileTypes = true },
});
application.Run();

// A connection middleware after UseHttps: it keeps a description of the connection while it is open.
ConnectionDelegate Track(ConnectionDelegate next) => async connection =>
{
    ITlsHandshakeFeature tls = connection.Features.GetRequiredFeature<ITlsHandshakeFeature>();
    KtlsOffload? offload = connection.Features.Get<IKtlsFeature>()?.Offload;
    KtlsFallbackReason stock = KtlsPlatform.Probe().NotSupportedReason;
    connections[connection.ConnectionId] = new
    {
        Id = connection.ConnectionId,
        Client = $"{connection.RemoteEndPoint}",
        Protocol = $"{tls.Protocol}",
        Cipher = $"{tls.NegotiatedCipherSuite}",
        Send = Describe(offload?.Send ?? KtlsDataPath.Managed, offload?.SendFallbackReason ?? stock),
        Receive = Describe(offload?.Receive ?? KtlsDataPath.Managed, offload?.ReceiveFallbackReason ?? stock),
    };
    try
    {
        await next(connection);
    }
    finally
    {
        connections.TryRemove(connection.ConnectionId, out _);
    }
};

// The data path and, if it is not the kernel, the reason.
static string Describe(KtlsDataPath path, KtlsFallbackReason reason) => reason == KtlsFallbackReason.None ? $"{path}" : $"{path}: {reason}";

// The counters of all TLS sockets in this network namespace. The file exists once the module tls is loaded.
static Dictionary<string, long> ReadCounters() => !File.Exists("/proc/net/tls_stat") ? [] : File.ReadLines("/proc/net/tls_stat")
    .Select(line => line.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries))
    .ToDictionary(fields => fields[0], fields => long.Parse(fields[1], CultureInfo.InvariantCulture));

// A certificate whose key only this process knows. It is for experiments: browsers warn about it.
static X509Certificate2 CreateCertificate()
{
    using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
    CertificateRequest request = new("CN=localhost", key, HashAlgorithmName.SHA256);
    SubjectAlternativeNameBuilder names = new();
    names.AddDnsName("localhost");
    names.AddIpAddress(IPAddress.Loopback);
    request.CertificateExtensions.Add(names.Build());
    return request.CreateSelfSigned(DateTimeOffset.UtcNow.AddDays(-1), DateTimeOffset.UtcNow.AddDays(30));
}
