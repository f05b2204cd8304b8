using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests <c>ktls run</c> with applications as their templates make them, published without our packages: kernel TLS reaches them, and they
/// answer as before.
/// </summary>
/// <remarks>Where the kernel has no TLS, OpenSSL on the socket shows that the connection is ours.</remarks>
[Trait("cell", "programs")]
[Trait("loop", "outer")]
public sealed class HookTests(Workshop workshop) : IDisposable
{
    private static readonly bool s_kernel = KtlsPlatform.Probe().IsSupported;

    private static readonly string s_proof =
        s_kernel ? " uses kernel TLS." : $" uses OpenSSL on the socket, without kernel TLS: {KtlsPlatform.Probe().NotSupportedReason}.";

    private static readonly (string, string) s_direct = (Application.DirectVariable, "1");

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData("webapi", "/weatherforecast", "temperatureC")]
    [InlineData("webapp", "/", "<title>Home page - ")]
    [InlineData("blazor", "/", "Hello, world!")]
    [InlineData("grpc", "/", "Communication with gRPC endpoints")] // by HTTP/2 alone
    [InlineData("web", "/", "Hello World!")]
    public async Task A_web_application(string template, string path, string text)
    {
        string published = await workshop.PublishAsync(ConsumerApp.Unchanged(template), $"unchanged-{template}");

        await AssertReachedAsync(published, ["dotnet", Path.Combine(published, $"unchanged-{template}.dll")], path, text);
    }

    /// <summary>Hosting start-up assemblies do not run in it.</summary>
    [Fact]
    public async Task A_web_application_on_the_slim_builder()
    {
        string published = await workshop.PublishAsync(ConsumerApp.Slim, "unchanged-slim");

        await AssertReachedAsync(published, ["dotnet", Path.Combine(published, "unchanged-slim.dll")], "/", "Hello World!");
    }

    /// <summary>Agents listen to the same events of the process.</summary>
    [Fact]
    public async Task A_web_application_with_telemetry()
    {
        string published = await workshop.PublishAsync(ConsumerApp.Telemetry, "unchanged-telemetry");

        await AssertReachedAsync(published, ["dotnet", Path.Combine(published, "unchanged-telemetry.dll")], "/", "Hello World!");
    }

    /// <summary>.NET announces a loaded assembly without a lock. The other thread does not wait for the first one, and its host is not missed.</summary>
    [Fact]
    public async Task A_web_application_that_another_thread_builds_while_the_library_starts()
    {
        string published = await workshop.PublishAsync(ConsumerApp.Race, "unchanged-race");
        string program = Path.Combine(published, "unchanged-race.dll");

        using WebServer server = await WebServer.RunAsync(published, Ktls("dotnet", program), s_direct, (HookBundle.HooksVariable, program));
        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));

        string said = await server.Process.KillAsync();
        Assert.Contains("The other thread has built it.\n", said, StringComparison.Ordinal);
        Assert.Contains(s_proof, said, StringComparison.Ordinal);
        Assert.DoesNotContain("start-up hook", said, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("webapi", "/weatherforecast", "temperatureC")]
    [InlineData("webapp", "/", "<title>Home page - ")]
    [InlineData("blazor", "/", "Hello, world!")]
    [InlineData("grpc", "/", "Communication with gRPC endpoints")]
    [InlineData("web", "/", "Hello World!")]
    public async Task A_web_application_with_a_runtime_of_its_own(string template, string path, string text)
    {
        string name = $"unchanged-{template}";
        string published = await workshop.PublishAsync(ConsumerApp.Unchanged(template), $"{name}-self-contained", "--runtime", "linux-x64", "--self-contained");

        await AssertReachedAsync(published, [Path.Combine(published, name)], path, text);
    }

    [Theory]
    [InlineData("unchanged-web-single-file", "--self-contained", "false", "-p:PublishSingleFile=true")]
    [InlineData("unchanged-web-compiled", "--self-contained", "false", "-p:PublishReadyToRun=true")]
    public async Task A_web_application_for_one_platform(string name, params string[] arguments)
    {
        string published = await workshop.PublishAsync(ConsumerApp.Unchanged("web"), name, ["--runtime", "linux-x64", .. arguments]);

        await AssertReachedAsync(published, [Path.Combine(published, "unchanged-web")], "/", "Hello World!");
    }

    /// <summary>It has no ASP.NET Core: the hook loads KernelTls.Hosting.</summary>
    [Fact]
    public async Task The_client_factory_of_a_worker()
    {
        string published = await workshop.PublishAsync(ConsumerApp.Worker, "unchanged-worker");
        using WebServer server = await WebServer.StartAsync(await WebAsync());
        (string, string)[] peer = [("PEER", $"{server.Address}"), ("SSL_CERT_FILE", Certificates.WriteAuthority(_directory.FullName)), ("KERNELTLS_LOG", "1")];
        string[] command = ["dotnet", Path.Combine(published, "unchanged-worker.dll")];

        // A process tries the kernel before its first connection. ktls info does nothing else.
        KernelCount trial = new();
        using Application info = Programs.Run(published, ["dotnet", HookBundle.Tool, "info"]);
        await info.ExitAsync();
        (long sent, long received) = trial.Count();
        KernelCount kernel = new();
        using Application worker = Programs.Run(published, Ktls(command), [s_direct, .. peer]);
        string said = await worker.SucceedAsync();

        AssertWorked(said);
        Assert.Equal((sent + (s_kernel ? 1 : 0), received + (KernelCount.ReceivesTls13 ? 1 : 0)), kernel.Count());
        Assert.Matches($"KernelTls: connections.* {(s_kernel ? "send=kernel" : "send=openssl")}.* client, ", said);
        Assert.DoesNotContain("stock", said, StringComparison.Ordinal);

        using Application unchanged = Programs.Run(published, command, peer);
        said = await unchanged.SucceedAsync();
        AssertWorked(said);
        Assert.DoesNotContain("KernelTls", said, StringComparison.Ordinal);
    }

    /// <summary>YARP makes its own handlers, so its client side is stock, and the log says so.</summary>
    [Fact]
    public async Task The_server_side_of_a_proxy()
    {
        string published = await workshop.PublishAsync(ConsumerApp.Forwarder, "unchanged-forwarder");
        using WebServer server = await WebServer.StartAsync(await WebAsync());
        (string, string)[] peer = [("PEER", $"{server.Address}"), ("SSL_CERT_FILE", Certificates.WriteAuthority(_directory.FullName))];
        using WebServer proxy = await WebServer.RunAsync(published, Ktls("dotnet", Path.Combine(published, "unchanged-forwarder.dll")), [s_direct, .. peer]);
        KernelCount kernel = new();

        Assert.Equal("Hello World!", await proxy.GetAsync("/", "2.0"));

        kernel.AssertEnds(proxy.Connections, used: 1);
        await proxy.Process.WaitForAsync("uses a stock SslStream for a connection to 127.0.0.1");
        Assert.Contains(s_proof, await proxy.Process.KillAsync(), StringComparison.Ordinal);
    }

    /// <summary>Nothing reaches its connections, but they are named.</summary>
    [Fact]
    public async Task A_console_application_runs_as_before()
    {
        string published = await workshop.PublishAsync(ConsumerApp.Stock, "unchanged-console");
        string[] command = ["dotnet", Path.Combine(published, "unchanged-console.dll")];

        using Application reached = Programs.Run(published, Ktls(command), s_direct, ("KERNELTLS_LOG", "1"));
        string said = await reached.SucceedAsync();
        Assert.Contains("loaded: KernelTls.StartupHook KernelTls\n", said, StringComparison.Ordinal);
        Assert.Contains("KernelTls: stock System.Net.Http: SslStream, not reached by the switch. client of 127.0.0.1, ", said, StringComparison.Ordinal);

        using Application unset = Programs.Run(published, command, HookBundle.Variable(HookBundle.FullPath), ("KERNELTLS_LOG", "1"));
        Assert.Equal("loaded: KernelTls.StartupHook\n", await unset.SucceedAsync());
        using Application off = Programs.Run(published, command, HookBundle.Variable(HookBundle.FullPath), (Application.KernelVariable, "0"));
        Assert.Equal("loaded: KernelTls.StartupHook\n", await off.SucceedAsync());
    }

    /// <summary>The hook costs a process little before it loads .NET's TLS.</summary>
    [Fact]
    public async Task A_program_without_TLS_loads_nothing_of_the_bundle()
    {
        string published = await workshop.PublishAsync(ConsumerApp.Idle, "unchanged-idle");

        using Application idle = Programs.Run(published, Ktls("dotnet", Path.Combine(published, "unchanged-idle.dll")), s_direct, ("KERNELTLS_LOG", "1"));
        await idle.WaitForAsync("loaded: KernelTls.StartupHook\n");

        using Application info = Programs.Run(_directory.FullName, ["dotnet", HookBundle.Tool, "info", "--process", $"{idle.ProcessId}"]);
        Assert.Equal(1, await info.ExitAsync());
        Assert.Contains("its start-up hook has not loaded the library", info.Said.ReplaceLineEndings(" "), StringComparison.Ordinal);
    }

    [Fact]
    public async Task Options_come_from_the_configuration()
    {
        string published = await workshop.PublishAsync(ConsumerApp.Unchanged("web"), "unchanged-web");
        string[] command = Ktls("dotnet", Path.Combine(published, "unchanged-web.dll"));

        using WebServer server = await WebServer.RunAsync(published, command, s_direct, ("Kestrel__Endpoints__Secure__KernelTls__Mode", "Disabled"), ("KernelTls__Fallback", "SslStream"));
        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));
        string said = await server.Process.KillAsync();
        Assert.DoesNotContain(s_proof, said, StringComparison.Ordinal);

        using Application wrong = Programs.Run(published, command, s_direct, ("KernelTls__Mode", "Sometimes"));
        Assert.NotEqual(0, await wrong.ExitAsync());
        Assert.Contains("KernelTls:Mode is 'Sometimes'. Expected Environment, ", wrong.Said, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("ASPNETCORE_PREVENTHOSTINGSTARTUP", "true")]
    [InlineData("ASPNETCORE_HOSTINGSTARTUPASSEMBLIES", "unchanged-web")]
    [InlineData("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")]
    public async Task In_an_environment(string name, string value)
    {
        string published = await workshop.PublishAsync(ConsumerApp.Unchanged("web"), "unchanged-web");

        await AssertReachedAsync(published, ["dotnet", Path.Combine(published, "unchanged-web.dll")], "/", "Hello World!", (name, value));
    }

    [Theory]
    [InlineData("OTHER:HOOK")]
    [InlineData("HOOK:OTHER")]
    public async Task Beside_another_hook(string hooks)
    {
        string other = Path.Combine(await workshop.PublishAsync(ConsumerApp.OtherHook, "other-hook"), "other-hook.dll");
        string published = await workshop.PublishAsync(ConsumerApp.Unchanged("web"), "unchanged-web");
        string value = hooks.Replace("OTHER", other, StringComparison.Ordinal)
            .Replace("HOOK", Path.Combine(HookBundle.FullPath, HookBundle.HookName), StringComparison.Ordinal);

        using WebServer server = await WebServer.RunAsync(
            published, ["dotnet", Path.Combine(published, "unchanged-web.dll")], (HookBundle.HooksVariable, value), s_direct, (Application.KernelVariable, "1"));
        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));

        string said = await server.Process.KillAsync();
        Assert.Contains("The other hook runs.", said, StringComparison.Ordinal);
        Assert.Contains(s_proof, said, StringComparison.Ordinal);
    }

    /// <summary>Runs an application without the hook and with it.</summary>
    private static async Task AssertReachedAsync(string published, string[] command, string path, string text, params (string, string)[] environment)
    {
        Assert.Empty(Directory.GetFiles(published, "*KernelTls*", SearchOption.AllDirectories));

        string before = await AskAsync(published, command, path, text, isReached: false, environment);
        string after = await AskAsync(published, Ktls(command), path, text, isReached: true, [s_direct, .. environment]);

        Assert.DoesNotContain("KernelTls", before, StringComparison.Ordinal);
        Assert.Contains(s_proof, after, StringComparison.Ordinal);
        Assert.DoesNotContain("start-up hook", after, StringComparison.Ordinal);
        Assert.Equal(LevelsOf(before), LevelsOf(after));
    }

    /// <summary>Starts an application, asks it once by each version of HTTP, and returns its output.</summary>
    private static async Task<string> AskAsync(
        string published, string[] command, string path, string text, bool isReached, (string, string)[] environment)
    {
        using WebServer server = await WebServer.RunAsync(published, command, environment);
        KernelCount kernel = new();
        string[] versions = text.Contains("gRPC", StringComparison.Ordinal) ? ["2.0"] : ["1.1", "2.0"];
        foreach (string version in versions)
        {
            Assert.Contains(text, await server.GetAsync(path, version), StringComparison.Ordinal);
        }

        kernel.AssertEnds(isReached ? server.Connections : 0, used: isReached ? versions.Length : 0);
        return await server.Process.KillAsync();
    }

    /// <summary>Returns the levels and categories of the entries in a log, without ours, and without those that only a first run has.</summary>
    private static string[] LevelsOf(string log) =>
        [.. log.Split('\n').Where(l => l.Length > 6 && l[4] == ':' && l[5] == ' ' && !l.Contains("KernelTls", StringComparison.Ordinal) && !l.Contains("DataProtection", StringComparison.Ordinal)).Distinct().Order(StringComparer.Ordinal)];

    /// <summary>Asserts that a worker got its answer and could look at all types. Entries of its log are between the lines.</summary>
    private static void AssertWorked(string said)
    {
        Assert.Contains("Hello World!\n", said, StringComparison.Ordinal);
        Assert.Contains("True\n", said, StringComparison.Ordinal);
    }

    private static string[] Ktls(params string[] command) => ["dotnet", HookBundle.Tool, "run", "--", .. command];

    private async Task<string> WebAsync() => Path.Combine(await workshop.PublishAsync(ConsumerApp.Unchanged("web"), "unchanged-web"), "unchanged-web.dll");
}
