using System.Net;
using System.Net.Sockets;
using KernelTls.Diagnostics;
using KernelTls.Tests;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests what the log says about endpoints: each one once, when it is bound, with the reason and the remedy.</summary>
public class EndpointReportTests
{
    /// <summary>Kestrel builds and binds an endpoint on localhost for both versions of IP.</summary>
    [Fact]
    public async Task An_endpoint_on_localhost_is_named_once_behind_its_address()
    {
        await using Server server = await Server.StartAsync(
            TlsMode.DirectOpenSsl, kestrel: options => options.ListenLocalhost(Server.FreePort(), endpoint => endpoint.UseHttps(Certificates.Ecdsa)));

        Server.Log.Entry[] entries = [.. server.Events.Entries];
        Server.Log.Entry[] named = [.. entries.Where(e => e.Id.Name == nameof(LogMessages.EndpointServedByOpenSsl))];
        Assert.Equal(2, named.Length);
        Assert.Single(named, e => e.Message.StartsWith("https://localhost:", StringComparison.Ordinal));
        Assert.All(named, e => Assert.EndsWith(Advice.On(KtlsFallbackReason.DisabledByMode), e.Message, StringComparison.Ordinal));
        Assert.True(
            Array.FindLastIndex(entries, e => e.Message.StartsWith("Now listening on", StringComparison.Ordinal)) < Array.IndexOf(entries, named[0]),
            string.Join('\n', entries.Select(e => e.Message)));
    }

    [Fact]
    public async Task A_start_that_fails_names_no_endpoint()
    {
        using TcpListener taken = new(IPAddress.Loopback, 0);
        taken.Start();
        Server.Log log = new();

        await Assert.ThrowsAnyAsync<IOException>(() => Server.StartAsync(
            TlsMode.DirectOpenSsl,
            kestrel: options => options.Listen(IPAddress.Loopback, ((IPEndPoint)taken.LocalEndpoint).Port, endpoint => endpoint.UseHttps(Certificates.Ecdsa)),
            builder: builder => builder.Logging.AddProvider(log)));

        Assert.NotEmpty(log.Entries);
        Assert.DoesNotContain(log.Entries, e => e.Category.StartsWith("KernelTls", StringComparison.Ordinal) && e.Level >= LogLevel.Information);
    }

    [Fact]
    public async Task A_server_without_https_says_that_it_has_none()
    {
        await using Server server = await Server.StartAsync(
            TlsMode.Stock,
            options => options.Listen(IPAddress.Loopback, 0),
            builder => builder.WebHost.UseKernelTls());

        Server.Log.Entry entry = Assert.Single(
            server.Events.Entries, e => e.Category.StartsWith("KernelTls", StringComparison.Ordinal) && e.Level >= LogLevel.Information);
        Assert.Equal(LogLevel.Information, entry.Level);
        Assert.Contains("no endpoint uses https (http://127.0.0.1:", entry.Message, StringComparison.Ordinal);
    }

    /// <summary>The status keeps a number of endpoints, which the servers of other tests exceed.</summary>
    [Fact]
    public Task The_status_of_the_process_has_the_endpoint() => OwnProcess.RunAsync(typeof(EndpointReportTests), nameof(Status));

    [Fact(Explicit = true)]
    public async Task Status()
    {
        await using Server server = await Server.StartAsync(TlsMode.DirectOpenSsl);

        Assert.Contains(
            ProcessStatus.Endpoints.Read(),
            e => e.Kind.Endpoint == server.Https.AbsoluteUri.TrimEnd('/') && e.Kind.State == "OpenSSL on the socket (DisabledByMode)");
    }
}
