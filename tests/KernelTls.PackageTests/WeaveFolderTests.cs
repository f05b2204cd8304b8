using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests <c>ktls weave</c> on applications that are published without any package of KernelTls: on OpenSSL here, and in the kernel in the lab's
/// cells.
/// </summary>
[Trait("loop", "outer")]
public class WeaveFolderTests(Workshop workshop)
{
    private static readonly ConsumerApp s_console = new("unwoven", "console", "Npgsql", Program: "Woven.cs");
    private static readonly ConsumerApp s_api = new("unwoven-webapi", "webapi", null);

    /// <summary>The template names a version of a package of ASP.NET Core that the sources may have in a later patch only.</summary>
    private const string AnyPatch = "-p:NoWarn=NU1603";

    [Fact]
    [Trait("cell", "programs")]
    public async Task A_console_application_with_Npgsql()
    {
        using PublishedFolder folder = new(await workshop.PublishAsync(s_console, "unwoven"));
        SortedDictionary<string, string> before = folder.Contents();
        Assert.DoesNotContain("Handshake", await WeaveTests.OpenAsync(folder["unwoven.dll"], (Application.DirectVariable, "1")), StringComparison.Ordinal);

        Assert.Contains("Npgsql.dll: 3 places\n", await folder.WeaveAsync(0), StringComparison.Ordinal);

        await WeaveTests.AssertReachedAsync(folder["unwoven.dll"]);
        SortedDictionary<string, string> woven = folder.Contents();
        Assert.Contains("Nothing to do", await folder.WeaveAsync(0), StringComparison.Ordinal);
        Assert.Equal(woven, folder.Contents());
        await folder.WeaveAsync(0, "--undo");
        Assert.Equal(before, folder.Contents());
    }

    /// <summary>Kestrel needs no code and no variable but the toggle, because the entry assembly has the attribute.</summary>
    [Fact]
    [Trait("cell", "programs")]
    public async Task The_template_of_a_web_api()
    {
        Assert.True(KtlsPlatform.Probe().IsSupported || !Cell.KtlsExpected);
        using PublishedFolder folder = new(await workshop.PublishAsync(s_api, "unwoven-webapi", AnyPatch));
        SortedDictionary<string, string> before = folder.Contents();

        Assert.Contains("unwoven-webapi.dll: the start-up class of KernelTls.AspNetCore\n", await folder.WeaveAsync(0), StringComparison.Ordinal);

        Assert.DoesNotContain("KernelTls", await ServeAsync(folder, isReached: false), StringComparison.Ordinal);
        Assert.DoesNotContain("KernelTls", await ServeAsync(folder, isReached: false, (Application.KernelVariable, "0")), StringComparison.Ordinal);
        Assert.Contains(" uses OpenSSL on the socket", await ServeAsync(folder, isReached: false, (Application.DirectVariable, "1")), StringComparison.Ordinal);
        Assert.Contains(
            KtlsPlatform.Probe().IsSupported ? " uses kernel TLS." : $" uses the default SslStream-based TLS: {KtlsPlatform.Probe().NotSupportedReason}.",
            await ServeAsync(folder, isReached: true, (Application.KernelVariable, "1")),
            StringComparison.Ordinal);
        await folder.WeaveAsync(0, "--undo");
        Assert.Equal(before, folder.Contents());
    }

    /// <summary>It knows no start-up classes: it works as before.</summary>
    [Fact]
    public async Task The_slim_builder_is_not_reached()
    {
        using PublishedFolder folder = new(await workshop.PublishAsync(ConsumerApp.Slim, "unchanged-slim"));
        await folder.WeaveAsync(0);

        using WebServer server = await WebServer.StartAsync(folder["unchanged-slim.dll"], (Application.DirectVariable, "1"));
        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));

        Assert.False(server.Process.HasLoaded(Repository.Shim));
        Assert.DoesNotContain(" uses OpenSSL on the socket", await server.Process.KillAsync(), StringComparison.Ordinal);
    }

    /// <summary>The hook uses the library in the folder, and finds the services that the start-up class has added.</summary>
    [Fact]
    [Trait("cell", "programs")]
    public async Task A_woven_folder_under_ktls_run()
    {
        using PublishedFolder folder = new(await workshop.PublishAsync(s_api, "unwoven-webapi", AnyPatch));
        await folder.WeaveAsync(0);

        using WebServer server = await WebServer.RunAsync(
            folder.FullName, ["dotnet", HookBundle.Tool, "run", "--", "dotnet", folder["unwoven-webapi.dll"]], (Application.DirectVariable, "1"));
        Assert.StartsWith("[{\"date\":", await server.GetAsync("/weatherforecast", "2.0"), StringComparison.Ordinal);

        Assert.True(server.Process.HasLoaded("application/KernelTls.dll"));
        Assert.False(server.Process.HasLoaded("bundle/KernelTls.dll"));
        string said = await server.Process.KillAsync();
        Assert.Single(Regex.Matches(said, " uses (kernel TLS\\.|OpenSSL on the socket)"));
        Assert.DoesNotContain("start-up hook", said, StringComparison.Ordinal);
    }

    /// <summary>YARP makes its own handlers.</summary>
    [Fact]
    [Trait("cell", "programs")]
    public async Task Both_sides_of_a_proxy()
    {
        const string Accepted = "\" accepted.";
        using PublishedFolder folder = new(await workshop.PublishAsync(ConsumerApp.Forwarder, "unchanged-forwarder"));
        using TemporaryDirectory directory = new();
        using WebServer peer = await WebServer.StartAsync(
            Path.Combine(await workshop.PublishAsync(ConsumerApp.Unchanged("web"), "unchanged-web"), "unchanged-web.dll"),
            ("Logging__LogLevel__Microsoft.AspNetCore.Server.Kestrel.Connections", "Debug"));
        Assert.Contains("Yarp.ReverseProxy.dll: ", await folder.WeaveAsync(0), StringComparison.Ordinal);
        using WebServer proxy = await WebServer.RunAsync(
            folder.FullName,
            ["dotnet", folder["unchanged-forwarder.dll"]],
            (Application.KernelVariable, "1"),
            (Application.DirectVariable, "1"),
            ("PEER", $"{peer.Address}"),
            ("SSL_CERT_FILE", Certificates.WriteAuthority(directory.FullName)),
            ("KERNELTLS_LOG", "1"));
        KernelCount kernel = new();

        Assert.Equal("Hello World!", await proxy.GetAsync("/", "2.0"));

        // Its own end of each connection: from the test, and to the peer, which logs them.
        await peer.Process.WaitForAsync(Accepted);
        int forwarded = Regex.Count(await peer.Process.KillAsync(), Accepted);
        kernel.AssertEnds(proxy.Connections + forwarded, used: 2);
        await proxy.Process.WaitForAsync(" client, ");
        string said = await proxy.Process.KillAsync();
        Assert.Matches($"KernelTls: connections.* send={(KtlsPlatform.Probe().IsSupported ? "kernel" : "openssl")}.* client, ", said);
        Assert.DoesNotContain("stock", said, StringComparison.Ordinal);
    }

    /// <summary>The places are those of docs/libraries.md, which the build's weaver reports.</summary>
    [Fact]
    public async Task Eight_libraries()
    {
        Dictionary<string, int> libraries = new()
        {
            ["Npgsql"] = 3,
            ["StackExchange.Redis"] = 5,
            ["MySqlConnector"] = 4,
            ["MQTTnet"] = 4,
            ["RabbitMQ.Client"] = 2,
            ["MongoDB.Driver"] = 4,
            ["MailKit"] = 10,
            ["NATS.Client.Core"] = 3,
        };
        using TemporaryDirectory directory = new();
        Directory.CreateDirectory(directory["eight"]);
        string versions = await File.ReadAllTextAsync(Path.Combine(Repository.Root, "Directory.Packages.props"));
        string references = string.Concat(libraries.Keys.Select(l => l == "NATS.Client.Core" ? "NATS.Net" : l).Select(
            l => $"""<PackageReference Include="{l}" Version="{Regex.Match(versions, $"Include=\"{Regex.Escape(l)}\" Version=\"([^\"]+)\"").Groups[1].Value}" />"""));
        await File.WriteAllTextAsync(directory["eight/eight.csproj"], $"""
            <Project Sdk="Microsoft.NET.Sdk">
              <PropertyGroup>
                <OutputType>Exe</OutputType><TargetFramework>net10.0</TargetFramework><ImplicitUsings>enable</ImplicitUsings><Nullable>enable</Nullable>
              </PropertyGroup>
              <ItemGroup>{references}</ItemGroup>
            </Project>
            """);
        File.Copy(Path.Combine(Repository.Root, "tests", "KernelTls.PackageTests", "Apps", "Woven.cs"), directory["eight/Program.cs"]);
        await workshop.BuildAsync(directory["eight"], "--target:Publish", $"-p:PublishDir={directory["published"]}/");
        using PublishedFolder folder = new(directory["published"]);
        SortedDictionary<string, string> before = folder.Contents();

        string said = await folder.WeaveAsync(0);

        foreach ((string library, int places) in libraries)
        {
            Assert.Contains($"{library}.dll: {places} places\n", said, StringComparison.Ordinal);
        }

        await WeaveTests.AssertReachedAsync(folder["eight.dll"]);
        await folder.WeaveAsync(0, "--undo");
        Assert.Equal(before, folder.Contents());
        Assert.DoesNotContain("Handshake", await WeaveTests.OpenAsync(folder["eight.dll"], (Application.DirectVariable, "1")), StringComparison.Ordinal);
    }

    /// <summary>The library of IHttpClientFactory is in the folder of an application without ASP.NET Core, as of a worker.</summary>
    [Fact]
    public async Task A_client_of_IHttpClientFactory_without_ASP_NET_Core_and_an_own_HttpClient()
    {
        ConsumerApp factory = new("unwoven-factory", "console", "Microsoft.Extensions.Http", Program: "Factory.cs");
        using PublishedFolder folder = new(await workshop.PublishAsync(factory, "unwoven-factory"));
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeStatusAsync(Certificates.Ecdsa, directory, System.Security.Authentication.SslProtocols.Tls13);
        using ExternalProgram peer = server;
        (string, string)[] trust = [("SSL_CERT_FILE", Certificates.WriteAuthority(directory.FullName)), ("SSL_CERT_DIR", directory["none"])];
        await folder.WeaveAsync(0);

        Assert.Equal("OK\nOK\n", await RunAsync());
        Assert.Equal(
            "HandshakeCompleted: OpenSsl NotEnabled OpenSsl NotEnabled Microsoft.Extensions.Http\nOK\n"
            + "HandshakeCompleted: OpenSsl NotEnabled OpenSsl NotEnabled unwoven-factory\nOK\n",
            await RunAsync((Application.DirectVariable, "1")));

        async Task<string> RunAsync(params (string, string)[] environment)
        {
            using Application application = Programs.Start(folder["unwoven-factory.dll"], [.. trust, .. environment], $"https://localhost:{port}/");
            return await application.SucceedAsync();
        }
    }

    [Fact]
    public async Task Compiled_ready_to_run_it_is_refused_and_stripped_on_request()
    {
        using PublishedFolder folder = new(await workshop.PublishAsync(
            s_console, "unwoven-ready-to-run", "--runtime", "linux-x64", "--self-contained", "false", "-p:PublishReadyToRun=true"));
        SortedDictionary<string, string> before = folder.Contents();

        Assert.Contains("Npgsql.dll cannot be woven, because it was compiled to native code (ReadyToRun)", await folder.WeaveAsync(1), StringComparison.Ordinal);
        Assert.Equal(before, folder.Contents());
        Assert.Contains("Npgsql.dll: 3 places, its native code is removed\n", await folder.WeaveAsync(0, "--strip"), StringComparison.Ordinal);

        await WeaveTests.AssertReachedAsync(folder["unwoven.dll"]);
        await folder.WeaveAsync(0, "--undo");
        Assert.Equal(before, folder.Contents());
    }

    [Fact]
    public async Task With_the_runtime_in_it()
    {
        using PublishedFolder folder = new(await workshop.PublishAsync(s_console, "unwoven-self-contained", "--runtime", "linux-x64", "--self-contained"));
        SortedDictionary<string, string> before = folder.Contents();

        string said = await folder.WeaveAsync(0, "--all");

        Assert.DoesNotContain("System.", said, StringComparison.Ordinal);
        Assert.Equal(File.ReadAllBytes(Path.Combine(Repository.Shims, "linux-x64", Repository.Shim)), File.ReadAllBytes(folder[Repository.Shim]));
        await WeaveTests.AssertReachedAsync(folder["unwoven"]);
        await folder.WeaveAsync(0, "--undo");
        Assert.Equal(before, folder.Contents());
    }

    [Theory]
    [InlineData("unwoven-trimmed", "was trimmed, and the library needs ", "--self-contained", "-p:PublishTrimmed=true")]
    [InlineData("unwoven-single-file", "is a single file with the assemblies in it.", "--self-contained", "false", "-p:PublishSingleFile=true")]
    [InlineData("unwoven-native", "is compiled to native code (NativeAOT) and has no assemblies.", "-p:PublishAot=true")]
    public async Task What_cannot_be_woven_is_refused_and_stays(string name, string reason, params string[] arguments)
    {
        using PublishedFolder folder = new(await workshop.PublishAsync(s_console, name, ["--runtime", "linux-x64", .. arguments]));
        SortedDictionary<string, string> before = folder.Contents();

        Assert.Contains(reason, await folder.WeaveAsync(1), StringComparison.Ordinal);

        Assert.Equal(before, folder.Contents());
    }

    [Fact]
    public async Task A_server_that_runs_is_refused()
    {
        using PublishedFolder folder = new(await workshop.PublishAsync(s_api, "unwoven-webapi", AnyPatch));
        SortedDictionary<string, string> before = folder.Contents();
        using WebServer server = await WebServer.StartAsync(folder["unwoven-webapi.dll"]);

        Assert.Contains(" Stop it first. Nothing was changed.", await folder.WeaveAsync(1), StringComparison.Ordinal);

        Assert.Equal(before, folder.Contents());
    }

    /// <summary>Starts the server, makes two requests, and returns the server's output.</summary>
    private static async Task<string> ServeAsync(PublishedFolder folder, bool isReached, params (string, string)[] environment)
    {
        using WebServer server = await WebServer.StartAsync(folder["unwoven-webapi.dll"], environment);
        KernelCount kernel = new();
        Assert.StartsWith("[{\"date\":", await server.GetAsync("/weatherforecast", "1.1"), StringComparison.Ordinal);
        Assert.StartsWith("[{\"date\":", await server.GetAsync("/weatherforecast", "2.0"), StringComparison.Ordinal);

        kernel.AssertEnds(isReached ? server.Connections : 0, used: isReached ? 2 : 0);
        return await server.Process.KillAsync();
    }
}
