using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Options;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests the options that an operator sets in the configuration: for the host, and for one endpoint.</summary>
public class ConfigurationTests
{
    private const string Host = "KernelTls";
    private const string First = "Kestrel:Endpoints:A";
    private const string Second = "Kestrel:Endpoints:B";

    private static readonly string s_switchedOff = Offloads.Managed(KtlsFallbackReason.DisabledByMode);

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    public static TheoryData<TlsMode, bool> OnOpenSslByCodeOrNot => [.. Modes.OnOpenSsl.SelectMany(mode => new[] { (mode, true), (mode, false) })];

    /// <summary>Gets every option. Kestrel never uses a socket after TLS has ended.</summary>
    private static string[] Options { get; } =
        [.. typeof(KtlsOptions).GetProperties().Select(p => p.Name).Except([nameof(KtlsOptions.AllowSocketReuse)]).Order(StringComparer.Ordinal)];

    private static string Keys { get; } = $"{string.Join(", ", Options)}.";

    public static TheoryData<string, string, string> Wrong => new()
    {
        { "KernelTls:Mode", "on", "KernelTls:Mode is 'on'. Expected Environment, Disabled, Preferred, Required." },
        { "KernelTls:Mode", "2", "KernelTls:Mode is '2'. Expected Environment, Disabled, Preferred, Required." },
        { "KernelTls:Mode", "", "KernelTls:Mode is ''. Expected Environment, Disabled, Preferred, Required." },
        { "KernelTls:Fallback", "Managed", "KernelTls:Fallback is 'Managed'. Expected Environment, SslStream, OpenSsl." },
        { "KernelTls:RecordLimit", "0", "KernelTls:RecordLimit is '0'. Expected a number of records, 1 or more." },
        { "KernelTls:RequireCloseNotify", "yes", "KernelTls:RequireCloseNotify is 'yes'. Expected true or false." },
        {
            "KernelTls:Modus", "Preferred",
            "KernelTls:Modus is not known. Expected one of the keys " + Keys
        },
        {
            "KernelTls", "Preferred",
            "KernelTls is 'Preferred'. Expected a section with one of the keys " + Keys
        },
        {
            "Kestrel:Endpoints:B:KernelTls:Directions", "Both ways",
            "Kestrel:Endpoints:B:KernelTls:Directions is 'Both ways'. Expected None, Send, Receive, Both."
        },
    };

    /// <summary>An operator excludes an endpoint. The package alone does, or the code that calls UseKernelTls().</summary>
    [Theory]
    [MemberData(nameof(OnOpenSslByCodeOrNot))]
    public async Task An_endpoint_is_excluded(TlsMode mode, bool byCode)
    {
        await using Server server = await StartAsync(
            byCode, [.. Section(Host, mode), ($"{Second}:KernelTls:Mode", "disabled"), ($"{Second}:KernelTls:Fallback", "SslStream")]);
        using HttpClient client = Server.CreateClient();

        await Offloads.AssertInAsync(mode, client, server.Https);
        await Offloads.AssertAsync(s_switchedOff, client, server.LastHttps);
    }

    [Theory]
    [MemberData(nameof(OnOpenSslByCodeOrNot))]
    public async Task One_endpoint_is_the_first(TlsMode mode, bool byCode)
    {
        await using Server server = await StartAsync(byCode, [(Host + ":Mode", "Disabled"), (Host + ":Fallback", "SslStream"), .. Section(Second + ":KernelTls", mode)]);
        using HttpClient client = Server.CreateClient();

        await Offloads.AssertAsync("stock", client, server.Https);
        await Offloads.AssertInAsync(mode, client, server.LastHttps);
    }

    /// <summary>Kestrel binds an endpoint anew when its section changes.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_change_takes_effect_when_Kestrel_reloads(TlsMode mode)
    {
        await using Server server = await StartAsync(
            byCode: true, [.. Section(Host, mode), (Second + ":Url", $"https://127.0.0.1:{Server.FreePort()}"), (Second + ":KernelTls:RequireCloseNotify", "true")]);
        using HttpClient client = Server.CreateClient("1.1", handler => handler.PooledConnectionLifetime = TimeSpan.Zero);
        await Offloads.AssertInAsync(mode, client, server.LastHttps);

        IConfigurationRoot configuration = (IConfigurationRoot)server.Services.GetRequiredService<IConfiguration>();
        configuration[Second + ":KernelTls:Mode"] = "Disabled";
        configuration[Second + ":KernelTls:Fallback"] = "SslStream";
        configuration.Reload();

        using PeriodicTimer timer = new(TimeSpan.FromMilliseconds(50));
        string? offload = null;
        for (long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds; offload != s_switchedOff;)
        {
            Assert.True(Environment.TickCount64 < deadline, $"Waited {Limits.Wait.TotalSeconds} s for the endpoint to change; it is {offload}");
            await timer.WaitForNextTickAsync();
            try
            {
                offload = await client.GetStringAsync(new Uri(server.LastHttps, "/offload")).InTime();
            }
            catch (HttpRequestException)
            {
                // The endpoint is being bound.
            }
        }

        await Offloads.AssertInAsync(mode, client, server.Https);
    }

    [Fact]
    public async Task The_last_source_decides_and_then_the_code()
    {
        await using Server server = await StartAsync(
            byCode: false,
            [(Host + ":Mode", "Disabled"), (Host + ":Fallback", "OpenSsl"), (Host + ":RecordLimit", "5")],
            builder =>
            {
                builder.Configuration.AddInMemoryCollection([new(Host + ":RecordLimit", "6"), new(Host + ":Directions", "Send")]);
                builder.WebHost.UseKernelTls(options => options.Fallback = KtlsFallback.SslStream);
            });

        KtlsOptions options = server.Services.GetRequiredService<KernelTlsServer>().Options;
        Assert.Equal(
            (KtlsMode.Disabled, KtlsFallback.SslStream, 6L, KtlsDirections.Send),
            (options.Mode, options.Fallback, options.RecordLimit, options.Directions));
    }

    /// <summary>The clients of IHttpClientFactory have the host's options, where no code asks for kernel TLS.</summary>
    [Fact]
    public async Task The_hosts_section_is_for_the_factory_s_clients_too()
    {
        await using Server server = await StartAsync(byCode: false, [(Host + ":Mode", "Disabled"), (Host + ":Fallback", "OpenSsl")]);

        Assert.Equal(
            KtlsFallback.OpenSsl,
            server.Services.GetRequiredService<IOptionsMonitor<KtlsOptions>>().Get(KtlsHandlerFilter.OptionsName).Fallback);
    }

    [Theory]
    [MemberData(nameof(Wrong))]
    public async Task A_wrong_key_or_value_ends_the_start(string key, string value, string message)
    {
        Exception? failure = await Record.ExceptionAsync(async () =>
        {
            await using Server server = await StartAsync(byCode: true, [(key, value)]);
        });

        Assert.Equal(message, Assert.IsType<InvalidOperationException>(failure).Message);
    }

    [Fact]
    public async Task A_section_of_an_endpoint_without_https_ends_the_start()
    {
        Exception? failure = await Record.ExceptionAsync(async () =>
        {
            await using Server server = await StartAsync(
                byCode: true, [("Kestrel:Endpoints:C:Url", "http://127.0.0.1:0"), ("Kestrel:Endpoints:C:KernelTls:Mode", "Disabled")]);
        });

        Assert.Equal(
            "Kestrel:Endpoints:C:KernelTls has options for http://127.0.0.1:0, which does not use https. Give it an https:// URL, or remove the section.",
            Assert.IsType<InvalidOperationException>(failure).Message);
    }

    /// <summary>Returns the settings that put connections into a mode.</summary>
    private static (string Key, string Value)[] Section(string section, TlsMode mode)
    {
        KtlsOptions options = Modes.OptionsOf(mode);
        return [(section + ":Mode", $"{options.Mode}"), (section + ":Fallback", $"{options.Fallback}")];
    }

    private static Task<Server> StartAsync(bool byCode, (string Key, string Value)[] settings, Action<WebApplicationBuilder>? configure = null)
    {
        TemporaryDirectory directory = new();
        (string certificate, string key) = Certificates.WritePem(Certificates.Ecdsa, directory.FullName);
        Dictionary<string, string?> all = new()
        {
            [First + ":Url"] = "https://127.0.0.1:0",
            [Second + ":Url"] = "https://127.0.0.1:0",
            ["Kestrel:Certificates:Default:Path"] = certificate,
            ["Kestrel:Certificates:Default:KeyPath"] = key,
        };
        foreach ((string name, string value) in settings)
        {
            all[name] = value;
        }

        return Server.StartAsync(
            TlsMode.Stock,
            options => options.Configure(options.ApplicationServices.GetRequiredService<IConfiguration>().GetSection("Kestrel"), reloadOnChange: true),
            builder =>
            {
                builder.Configuration.AddInMemoryCollection(all);
                if (byCode)
                {
                    builder.WebHost.UseKernelTls();
                }
                else
                {
                    new KernelTlsHostingStartup().Configure(builder.WebHost);
                }

                configure?.Invoke(builder);
            },
            application => application.Lifetime.ApplicationStopped.Register(directory.Dispose));
    }
}
