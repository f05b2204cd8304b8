using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests that UseKernelTls() has the same meaning on a handler as on a web host: kernel TLS is requested and used if
/// available.
/// </summary>
public class UseKernelTlsTests
{
    [Fact]
    public async Task Without_options_a_handler_prefers_kernel_TLS() =>
        Assert.Equal(KtlsPlatform.Probe().NotSupportedReason, await ReasonAsync(handler => handler.UseKernelTls()));

    [Fact]
    public async Task Options_without_a_mode_leave_it_to_the_environment()
    {
        Assert.SkipWhen(Environment.GetEnvironmentVariable(Application.KernelVariable) is not null, "The environment variable is set.");
        Assert.Equal(KtlsFallbackReason.NotEnabled, await ReasonAsync(handler => handler.UseKernelTls(new KtlsOptions())));
    }

    /// <summary>Returns the reason of the sending direction of a request's stream.</summary>
    private static async Task<KtlsFallbackReason> ReasonAsync(Action<SocketsHttpHandler> use)
    {
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen();
        using SocketsHttpHandler handler = new() { UseProxy = false };
        handler.SslOptions.CertificateChainPolicy = Certificates.Trust();
        KtlsFallbackReason? reason = null;
        handler.PlaintextStreamFilter = (context, _) =>
        {
            reason = Assert.IsType<KtlsStream>(context.PlaintextStream).Offload.SendFallbackReason;
            return ValueTask.FromResult(context.PlaintextStream);
        };
        use(handler);
        using HttpClient client = new(handler);
        Task<string> asking = client.GetStringAsync(new Uri($"https://localhost:{((IPEndPoint)listener.LocalEndPoint!).Port}/"));
        await using SslStream server = new(new NetworkStream(await listener.AcceptAsync().InTime("a connection"), ownsSocket: true));
        await server.AuthenticateAsServerAsync(Handshakes.ServerOptions(SslProtocols.None)).InTime("the handshake");
        await server.ReadAtLeastAsync(new byte[1], 1).InTime("the request");
        await server.WriteAsync(Encoding.ASCII.GetBytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
        Assert.Equal("ok", await asking.InTime("the answer"));
        return reason!.Value;
    }
}
