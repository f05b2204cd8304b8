using System.Net;
using System.Security.Authentication;
using KernelTls.Tests;
using KernelTls.Weaving;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests that a client's authentication is bound to its connection, with a server that demands it (RFC 5929).
/// </summary>
/// <remarks>
/// System.Net.Http reads <see cref="System.Net.Security.SslStream.TransportContext"/>, which a subclass cannot override. The
/// runtime's own NTLM is used, because a machine need not have a library for it.
/// </remarks>
public class HttpClientBindingTests
{
    static HttpClientBindingTests() => AppContext.SetSwitch("System.Net.Security.UseManagedNtlm", true);

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    [Theory]
    [MemberData(nameof(All))]
    public async Task NTLM_is_bound_to_the_connection(TlsMode mode, SslProtocols version)
    {
        using SocketsHttpHandler handler = new();
        if (mode != TlsMode.Stock)
        {
            handler.UseKernelTls(Modes.OptionsOf(mode));
        }

        await AssertBoundAsync(handler, version);
    }

    /// <summary>Runs woven code in a process that has OpenSSL on the socket switched on, which is decided once.</summary>
    [Fact]
    public Task NTLM_of_a_woven_client_is_bound_to_the_connection() =>
        OwnProcess.RunAsync(typeof(HttpClientBindingTests), nameof(Woven), (Application.DirectVariable, "1"));

    [Fact(Explicit = true)]
    public async Task Woven()
    {
        foreach (SslProtocols version in new[] { SslProtocols.Tls12, SslProtocols.Tls13 })
        {
            using SocketsHttpHandler handler = WovenConstructors<HttpClientBindingTests>.NewSocketsHttpHandler();
            Assert.NotNull(handler.ConnectCallback);
            await AssertBoundAsync(handler, version);
        }
    }

    private static async Task AssertBoundAsync(SocketsHttpHandler handler, SslProtocols version)
    {
        using NtlmServer server = new();
        handler.UseProxy = false;
        handler.SslOptions.CertificateChainPolicy = Certificates.Trust();
        handler.Credentials = new CredentialCache { { server.Address, "NTLM", new NetworkCredential("user", "secret", "TEST") } };
        using HttpClient client = new(handler);
        Task<string> serving = server.ServeAsync(version);
        using HttpResponseMessage answer = await client.GetAsync(server.Address).InTime("the answer");

        Assert.Equal(NtlmServer.ExpectedHash, await serving.InTime("the server"));
        Assert.Equal(HttpStatusCode.OK, answer.StatusCode);
    }
}
