using System.Net;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests endpoints with their own options.</summary>
public class UseKernelTlsTests
{
    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    /// <summary>Tests UseKernelTls before UseHttps, after it, and with an unrelated middleware around it.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task One_endpoint_alone_wherever_it_says_so(TlsMode mode)
    {
        foreach (string place in new[] { "before", "after", "behind others" })
        {
            await using Server server = await StartAsync(TlsMode.Managed, endpoint =>
            {
                if (place == "before")
                {
                    endpoint.UseKernelTls(options => Set(options, mode));
                }

                if (place == "behind others")
                {
                    endpoint.Use(next => context => next(context));
                }

                endpoint.UseHttps(Certificates.Ecdsa);
                if (place != "before")
                {
                    endpoint.Use(next => context => next(context));
                    endpoint.UseKernelTls(options => Set(options, mode));
                }
            });
            await AssertAsync(server, mode, TlsMode.Stock);
        }
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task All_but_one_endpoint(TlsMode mode)
    {
        await using Server server = await StartAsync(mode, endpoint => endpoint.UseHttps(Certificates.Ecdsa).UseKernelTls(options =>
        {
            options.Mode = KtlsMode.Disabled;
            options.Fallback = KtlsFallback.SslStream;
        }));

        await AssertAsync(server, Offloads.Managed(KtlsFallbackReason.DisabledByMode), mode);
        Server.Log.Entry entry = Assert.Single(
            server.Events.Entries, e => e.Message.Contains("SslStream-based TLS, as configured", StringComparison.Ordinal));
        Assert.Equal(LogLevel.Debug, entry.Level);
        Assert.Equal($"{server.Https.AbsoluteUri.TrimEnd('/')} uses the default SslStream-based TLS, as configured ({KtlsFallbackReason.DisabledByMode}).", entry.Message);
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task It_begins_with_the_server_s_options_and_a_second_call_changes_the_first(TlsMode mode)
    {
        List<string> seen = [];
        await using Server server = await StartAsync(
            mode,
            endpoint => endpoint
                .UseKernelTls(options =>
                {
                    seen.Add($"{options.Mode} {options.RecordLimit} {options.Directions}");
                    options.Directions = KtlsDirections.Send;
                })
                .UseKernelTls(options => seen.Add($"{options.Mode} {options.RecordLimit} {options.Directions}"))
                .UseHttps(Certificates.Ecdsa),
            options => options.RecordLimit = 1_000_000);

        Assert.Equal(["Preferred 1000000 Both", "Preferred 1000000 Send"], seen);
        using HttpClient client = Server.CreateClient("2.0");

        // UseKernelTls on an endpoint requests kernel TLS, whatever the server's mode.
        string expected = KtlsPlatform.Probe().IsSupported
            ? "send=kernel receive=openssl (DirectionNotRequested)"
            : $"send=openssl ({KtlsPlatform.Probe().NotSupportedReason}) receive=openssl ({KtlsPlatform.Probe().NotSupportedReason})";
        Assert.Equal(expected, await client.GetStringAsync(new Uri(server.Https, "/offload")).InTime());
        Assert.Equal(
            Offloads.Expected(mode, SslProtocols.Tls13), await client.GetStringAsync(new Uri(server.LastHttps, "/offload")).InTime());
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Endpoints_of_the_configuration_by_name(TlsMode mode)
    {
        await using Server server = await Server.StartConfiguredAsync(
            TlsMode.Managed,
            configuration => configuration.Endpoint("A", endpoint => endpoint.ListenOptions.UseKernelTls(o => Set(o, mode))),
            "A",
            "B");

        await AssertAsync(server, mode, TlsMode.Stock);
    }

    [Fact]
    public async Task Required_is_the_endpoint_s_alone()
    {
        using TemporaryDirectory directory = new();
        KtlsNotAvailableException e = await Assert.ThrowsAsync<KtlsNotAvailableException>(() => Server.StartAsync(
            TlsMode.Managed,
            options => options.ListenUnixSocket(directory["socket"], endpoint =>
                endpoint.UseHttps(Certificates.Ecdsa).UseKernelTls(Offloads.Require)),
            configure: null));
        Assert.Equal(KtlsPlatform.Probe().IsSupported ? KtlsFallbackReason.NotTcp : KtlsPlatform.Probe().NotSupportedReason, e.Reason);

        Task<Server> starting = StartAsync(TlsMode.Managed, endpoint => endpoint.UseHttps(Certificates.Ecdsa).UseKernelTls(Offloads.Require));
        if (!KtlsPlatform.Probe().IsSupported)
        {
            e = await Assert.ThrowsAsync<KtlsNotAvailableException>(() => starting.InTime());
            Assert.Equal(KtlsPlatform.Probe().NotSupportedReason, e.Reason);
            return;
        }

        await using Server server = await starting.InTime();
        await AssertAsync(server, Offloads.Required, TlsMode.Stock);
    }

    [Fact]
    public async Task An_endpoint_without_UseHttps_is_a_mistake()
    {
        InvalidOperationException e = await Assert.ThrowsAsync<InvalidOperationException>(() => Server.StartAsync(
            TlsMode.Managed,
            options => options.Listen(IPAddress.Loopback, 0, endpoint => endpoint.UseKernelTls()),
            configure: null));

        Assert.Contains("http://127.0.0.1:0, which does not use UseHttps", e.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task The_builder_s_call_is_needed()
    {
        InvalidOperationException e = await Assert.ThrowsAsync<InvalidOperationException>(() => Server.StartAsync(
            TlsMode.Stock,
            options => options.Listen(IPAddress.Loopback, 0, endpoint => endpoint.UseHttps(Certificates.Ecdsa).UseKernelTls()),
            configure: null));

        Assert.Contains("Call builder.WebHost.UseKernelTls()", e.Message, StringComparison.Ordinal);
    }

    /// <summary>
    /// UseHttps is added behind a middleware that came after UseKernelTls, and no step of this library can precede it.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_middleware_in_between_is_said_at_the_start(TlsMode mode)
    {
        await using Server server = await Server.StartConfiguredAsync(
            mode,
            configuration => configuration.Endpoint(
                "A", endpoint => endpoint.ListenOptions.UseKernelTls().Use(next => context => next(context))),
            "A");

        server.AssertOneWarning(KtlsFallbackReason.EndpointNotFound);
        using HttpClient client = Server.CreateClient("2.0");
        await Offloads.AssertAsync(Offloads.Managed(KtlsFallbackReason.EndpointNotFound), client, server.Https);
    }

    /// <summary>Asserts the modes of the first endpoint and of one without its own options.</summary>
    private static Task AssertAsync(Server server, TlsMode first, TlsMode other) =>
        AssertAsync(server, Offloads.Expected(first, SslProtocols.Tls13), other);

    private static async Task AssertAsync(Server server, string first, TlsMode other)
    {
        Assert.NotEqual(server.Https, server.LastHttps);
        using HttpClient client = Server.CreateClient("2.0");
        await Offloads.AssertAsync(first, client, server.Https);
        await Offloads.AssertInAsync(other, client, server.LastHttps);
    }

    private static void Set(KtlsOptions options, TlsMode mode)
    {
        options.Mode = Modes.OptionsOf(mode).Mode;
        options.Fallback = Modes.OptionsOf(mode).Fallback;
    }

    private static Task<Server> StartAsync(TlsMode mode, Action<ListenOptions> first, Action<KtlsOptions>? tune = null) => Server.StartAsync(
        mode,
        options =>
        {
            options.Listen(IPAddress.Loopback, 0, first);
            options.Listen(IPAddress.Loopback, 0, endpoint => endpoint.UseHttps(Certificates.Ecdsa));
            options.Listen(IPAddress.Loopback, 0);
        },
        builder =>
        {
            if (tune is not null)
            {
                builder.WebHost.UseKernelTls(options =>
                {
                    Set(options, mode);
                    tune(options);
                });
            }
        });
}
