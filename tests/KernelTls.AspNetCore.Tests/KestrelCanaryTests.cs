using System.Net.Security;
using System.Security.Authentication;
using KernelTls.AspNetCore.Internals;
using KernelTls.Diagnostics;
using KernelTls.Interop;
using KernelTls.Tests;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests that a Kestrel whose private members behave differently is detected at the start of the server, whose endpoints then use stock TLS
/// with the reason. Also run on each servicing release.
/// </summary>
public class KestrelCanaryTests
{
    private static readonly KestrelMembers s_used = new();

    private static readonly Dictionary<string, (KestrelMembers Members, string Says)> s_changes = new()
    {
        ["the transport's options are not copied"] = (
            s_used with { ConnectionOptions = _ => KestrelInternals.ConnectionOptions(new SocketTransportOptions()) },
            "SocketConnectionFactoryOptions does not copy"),
        ["the defaults are others"] = (
            s_used with { EndpointDefaultsOf = _ => _ => { } }, "EndpointDefaults is not what ConfigureEndpointDefaults set"),
        ["endpoints are not listed"] = (s_used with { EndpointsOf = _ => [] }, "does not list the endpoint"),
        ["each endpoint is https"] = (s_used with { IsHttps = _ => true }, "IsTls does not follow"),
        ["no endpoint is https"] = (s_used with { IsHttps = _ => false }, "IsTls does not follow"),
        ["the middleware is a copy"] = (
            s_used with { MiddlewareOf = e => [.. KestrelInternals.MiddlewareOf(e)] }, "in front of UseHttps does not call"),
        ["the options are others"] = (
            s_used with { OptionsOf = m => m.Options is null ? null : new HttpsConnectionAdapterOptions() }, "_options is not what UseHttps set"),
        ["there is always a callback"] = (
            s_used with { CallbackOf = m => m.Callback ?? (_ => default) }, "has a callback for an endpoint with options"),
        ["there is always a certificate"] = (
            s_used with { CertificateContextOf = _ => SslStreamCertificateContext.Create(Certificates.Rsa, null, offline: true) },
            "has a certificate's context for an endpoint with a selector"),
        ["the versions of HTTP are others"] = (
            s_used with { ProtocolsOf = _ => HttpProtocols.Http1AndHttp2 }, "_httpProtocols is Http1AndHttp2, not that"),
        ["the timeout is another"] = (s_used with { HandshakeTimeoutOf = m => m.HandshakeTimeout * 2 }, "_handshakeTimeout is not"),
        ["the feature has another stream"] = (
            s_used with { CreateTlsFeature = (m, _, connection) => m.CreateTlsFeature(new SslStream(new MemoryStream()), connection) },
            "TlsConnectionFeature does not return what was set"),
        ["the name is dropped"] = (s_used with { SetHostName = (_, _) => { } }, "TlsConnectionFeature does not return what was set"),
        ["a decision is dropped"] = (s_used with { AllowDelayedCertificate = (_, _) => { } }, "TlsConnectionFeature does not return what was set"),
        ["what was negotiated is not kept"] = (s_used with { CreateTlsFeature = Forget }, "does not return what the stream negotiated"),
        ["the middleware shakes hands nevertheless"] = (
            s_used with { MiddlewareOf = e => EndWith(e, Task.CompletedTask) }, "does not pass on a connection that has TLS features"),
        ["the middleware waits"] = (
            s_used with { MiddlewareOf = e => EndWith(e, new TaskCompletionSource().Task) }, "does not pass on a connection that has TLS features"),
        ["there is never a callback"] = (s_used with { CallbackOf = _ => null }, "_tlsCallbackOptions is not what UseHttps set"),
        ["the callback's state is another"] = (
            s_used with { CreateCallbackContext = (_, _, _, _, _) => new TlsHandshakeCallbackContext() }, "_tlsCallbackOptionsState is not"),
        ["the callback's token is another"] = (
            s_used with { CreateCallbackContext = (m, c, s, h, _) => m.CreateCallbackContext(c, s, h, default) },
            "TlsHandshakeCallbackContext does not return"),
        ["a member throws"] = (
            s_used with { MiddlewareOf = _ => throw new NotSupportedException("gone") }, "failed: NotSupportedException: gone"),
    };

    public static TheoryData<string> Changes => [.. s_changes.Keys];

    [Fact]
    public void This_Kestrel_does_what_this_package_expects() => Assert.Equal("", KestrelCanary.FindChange());

    [Theory]
    [MemberData(nameof(Changes))]
    public async Task A_Kestrel_that_behaves_differently_keeps_its_own_TLS(string what)
    {
        (KestrelMembers members, string says) = s_changes[what];
        string change = KestrelCanary.FindChange(members);

        Assert.Contains(says, change, StringComparison.Ordinal);
        await AssertStockAsync(new KestrelSupport(() => "", () => KestrelCanary.FindChange(members), _ => ""), KtlsFallbackReason.KestrelChanged, change);
    }

    /// <summary>The trial has no certificate, so that an endpoint's own shows that Kestrel keeps it elsewhere.</summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public Task An_endpoint_whose_certificate_is_elsewhere_keeps_its_own_TLS(bool isAnother)
    {
        SslStreamCertificateContext? found = isAnother ? SslStreamCertificateContext.Create(Certificates.Rsa, null, offline: true) : null;
        KestrelMembers members = s_used with { CertificateContextOf = _ => found };

        return AssertStockAsync(
            new KestrelSupport(() => "", () => "", https => KestrelCanary.FindChangeIn(https, members)),
            KtlsFallbackReason.KestrelChanged,
            "_serverCertificateContext is not that of the certificate");
    }

    /// <summary>Kestrel does not use the certificate of an endpoint that has a selector as well.</summary>
    [Fact]
    public async Task An_endpoint_with_a_selector_has_no_certificate_to_compare()
    {
        await using Server server = await Server.StartAsync(
            TlsMode.DirectOpenSsl, https: options => options.ServerCertificateSelector = (_, _) => Certificates.Rsa);
        using HttpClient client = Server.CreateClient("2.0");

        await Offloads.AssertInAsync(TlsMode.DirectOpenSsl, client, server.Https);
    }

    [Fact]
    public Task A_Kestrel_that_lacks_a_member_keeps_its_own_TLS() => AssertStockAsync(
        new KestrelSupport(() => "ListenOptions._middleware", () => throw new InvalidOperationException("tried"), _ => throw new InvalidOperationException("checked")),
        KtlsFallbackReason.KestrelNotSupported,
        "ListenOptions._middleware");

    /// <summary>.NET 11 keeps the values of a stream that has been disposed, if it has taken them before.</summary>
    [Fact]
    public void What_a_feature_does_not_keep_is_noticed()
    {
        string change = KestrelCanary.FindChange(s_used with { Snapshot = _ => { } });

        Assert.Equal(KestrelTlsFeature.TakesLogger, change.Length != 0);
    }

    [Fact]
    public async Task Required_stops_the_start_with_the_difference()
    {
        KtlsNotAvailableException e = await Assert.ThrowsAsync<KtlsNotAvailableException>(() => Server.StartAsync(
            TlsMode.DirectOpenSsl,
            builder: builder =>
            {
                builder.Services.AddSingleton(new KestrelSupport(() => "", () => "X answers Y", _ => ""));
                builder.WebHost.UseKernelTls(options => options.Mode = KtlsMode.Required);
            }));

        // Where the kernel has no TLS, that comes first.
        Assert.Equal(
            KtlsPlatform.Probe().IsSupported ? KtlsFallbackReason.KestrelChanged : KtlsPlatform.Probe().NotSupportedReason, e.Reason);
        Assert.Equal(KtlsPlatform.Probe().IsSupported, e.Message.Contains("X answers Y", StringComparison.Ordinal));
    }

    [Fact]
    public async Task An_endpoint_with_options_of_its_own_keeps_its_own_TLS()
    {
        await using Server server = await Server.StartAsync(
            TlsMode.Stock,
            listen: endpoint => endpoint.UseKernelTls(),
            builder: builder =>
            {
                builder.Services.AddSingleton(new KestrelSupport(() => "", () => "X answers Y", _ => ""));
                builder.WebHost.UseKernelTls(options => options.Mode = KtlsMode.Disabled);
            });
        using HttpClient client = Server.CreateClient("2.0");

        await Offloads.AssertAsync("stock", client, server.Https);
        Assert.Contains(
            server.Events.Entries,
            e => e.Id.Name == nameof(LogMessages.EndpointStaysStock) && e.Message.Contains(nameof(KtlsFallbackReason.KestrelChanged), StringComparison.Ordinal));
    }

    private static async Task AssertStockAsync(KestrelSupport kestrel, KtlsFallbackReason reason, string detail)
    {
        await using Server server = await Server.StartAsync(TlsMode.DirectOpenSsl, builder: builder => builder.Services.AddSingleton(kestrel));
        using HttpClient client = Server.CreateClient("2.0");

        await Offloads.AssertAsync(Offloads.Managed(reason), client, server.Https);
        Server.Log.Entry entry = Assert.Single(
            server.Events.Entries, e => e.Category.StartsWith("KernelTls", StringComparison.Ordinal) && e.Level >= LogLevel.Information);
        Assert.Equal(LogLevel.Warning, entry.Level);
        Assert.Contains($" uses the default SslStream-based TLS: {reason}. {Advice.On(reason)} ", entry.Message, StringComparison.Ordinal);
        Assert.Contains(detail, entry.Message, StringComparison.Ordinal);
    }

    private static KestrelTlsFeature Forget(KestrelHttpsMiddleware https, SslStream stream, ConnectionContext connection)
    {
        RuntimeInternals.Publish(stream, SslProtocols.Tls12, TlsCipherSuite.TLS_AES_128_GCM_SHA256, null, inHandshake: true);
        return https.CreateTlsFeature(stream, connection);
    }

    /// <summary>Replaces the last middleware of an endpoint by one that returns a task, and does nothing else.</summary>
    private static List<Func<ConnectionDelegate, ConnectionDelegate>> EndWith(ListenOptions endpoint, Task task)
    {
        List<Func<ConnectionDelegate, ConnectionDelegate>> middleware = KestrelInternals.MiddlewareOf(endpoint);
        middleware[^1] = _ => _ => task;
        return middleware;
    }
}
