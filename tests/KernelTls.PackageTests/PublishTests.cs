using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests the forms in which applications are published. OpenSSL on the socket shows without a kernel that every part is
/// included.
/// </summary>
[Trait("loop", "outer")]
public class PublishTests(Workshop workshop)
{
    private const string OnOpenSsl = "send=openssl (NotEnabled) receive=openssl (NotEnabled)";

    [Fact]
    public async Task Console()
    {
        string published = await workshop.PublishAsync(ConsumerApp.Console, "console");

        Assert.Equal(
            ["linux-arm64", "linux-musl-arm64", "linux-musl-x64", "linux-x64"],
            Directory.GetDirectories(Path.Combine(published, "runtimes")).Select(Path.GetFileName).Order(StringComparer.Ordinal));
        Assert.Equal(["KernelTls.dll"], Directory.GetFiles(published, "KernelTls*.dll", SearchOption.AllDirectories).Select(f => Path.GetRelativePath(published, f)));
        await AssertConsoleAsync(Path.Combine(published, "console.dll"));
    }

    [Fact]
    public async Task Console_with_the_runtime_in_it()
    {
        string published = await workshop.PublishAsync(
            ConsumerApp.Console, "console-self-contained", "--runtime", "linux-x64", "--self-contained");

        Assert.True(File.Exists(Path.Combine(published, "libcoreclr.so")));
        await AssertConsoleAsync(Path.Combine(published, "console"));
    }

    [Fact]
    public async Task Web_trimmed()
    {
        string published = await workshop.PublishAsync(
            ConsumerApp.Web, "web-trimmed", "--runtime", "linux-x64", "--self-contained", "-p:PublishTrimmed=true");

        AssertTrimmed(published, "KernelTls");
        AssertTrimmed(published, "KernelTls.AspNetCore");
        await AssertWebAsync(Path.Combine(published, "web"));
    }

    [Fact]
    public async Task Web_in_a_single_file()
    {
        string published = await workshop.PublishAsync(
            ConsumerApp.Web, "web-single-file", "--runtime", "linux-x64", "--self-contained", "false", "-p:PublishSingleFile=true");

        Assert.Equal([Repository.Shim, "web", "web.pdb"], FilesOf(published).Where(f => !f.EndsWith(".json", StringComparison.Ordinal)));
        await AssertWebAsync(Path.Combine(published, "web"));
    }

    /// <summary>
    /// The program cannot be started on a machine without .NET's musl runtime, whose packs are not available from every
    /// feed. <c>eng/native --test</c> shows that the shim works there; this is the same file, and musl's loader
    /// resolves everything that it needs.
    /// </summary>
    [Fact]
    public async Task Console_for_musl()
    {
        string published = await workshop.PublishAsync(
            ConsumerApp.Console, "console-musl", "--runtime", "linux-musl-x64", "--self-contained", "false", "-p:UseAppHost=false");

        string shim = Path.Combine(published, Repository.Shim);
        Assert.Equal(File.ReadAllBytes(Path.Combine(Repository.Shims, "linux-musl-x64", Repository.Shim)), File.ReadAllBytes(shim));
        string bound = await Workshop.RunAsync(published, "/lib/ld-musl-x86_64.so.1", "--list", shim);
        Assert.Contains("ld-musl-x86_64.so.1", bound, StringComparison.Ordinal);
    }

    /// <summary>linux-arm has no shim in the package. Its assemblies run here as they would there.</summary>
    [Fact]
    public async Task For_a_platform_without_a_shim_it_is_the_stock_stream_and_says_why()
    {
        string[] arguments =
            ["--runtime", "linux-arm", "--self-contained", "false", "-p:UseAppHost=false", "-p:PlatformTarget=AnyCPU"];
        string console = await workshop.PublishAsync(ConsumerApp.Console, "console-arm", arguments);
        string web = await workshop.PublishAsync(ConsumerApp.Web, "web-arm", arguments);

        Assert.Equal(["console.deps.json", "console.dll", "console.pdb", "console.runtimeconfig.json", "KernelTls.dll"], FilesOf(console));
        Assert.Equal(
            "ping send=managed (NativeLibraryMissing) receive=managed (NativeLibraryMissing), platform: NativeLibraryMissing\n",
            await Programs.PingAsync(Path.Combine(console, "console.dll"), (Application.KernelVariable, "1")));
        using WebServer server = await WebServer.StartAsync(Path.Combine(web, "web.dll"), (Application.KernelVariable, "1"));
        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));
        Assert.Contains(
            "uses the default SslStream-based TLS: NativeLibraryMissing. ", await server.Process.KillAsync(), StringComparison.Ordinal);
    }

    /// <summary>
    /// In an application for one platform the runtime compiles nothing of the library but the framework's generic code over its types, which
    /// no library can contain. This is for .NET 10: .NET 11 has another format of compiled code, and rejects that of .NET 10.
    /// </summary>
    [Theory]
    [InlineData("console-x64", "--runtime", "linux-x64", "--self-contained", "false")]
    [InlineData("console-self-contained", "--runtime", "linux-x64", "--self-contained")]
    public async Task The_library_runs_as_it_was_compiled_ahead_of_time(string name, params string[] arguments)
    {
        string published = await workshop.PublishAsync(ConsumerApp.Console, name, arguments);
        string program = Path.Combine(published, "console");

        Assert.Empty(await MethodsCompiledAsync(program));
        Assert.NotEmpty(await MethodsCompiledAsync(program, ("DOTNET_ReadyToRun", "0")));
    }

    /// <summary>Returns the methods of the library that the runtime compiled while the application had one connection.</summary>
    /// <remarks>
    /// Without tiers, because the thread that compiles again in the background may still write to the list when the runtime
    /// closes it, and then the application is aborted as it ends.
    /// </remarks>
    private static async Task<string[]> MethodsCompiledAsync(string program, params (string, string)[] environment)
    {
        using TemporaryDirectory directory = new();
        string list = directory["methods.txt"];
        (string, string)[] listed =
            [("DOTNET_JitStdOutFile", list), ("DOTNET_JitDisasmSummary", "1"), ("DOTNET_TieredCompilation", "0")];
        await Programs.PingAsync(program, [(Application.DirectVariable, "1"), .. listed, .. environment]);

        // What the package has compiled into the program is the program's.
        return
        [
            .. File.ReadLines(list).Where(line => line.Contains(": JIT compiled KernelTls.", StringComparison.Ordinal)
                && !line.Contains(": JIT compiled KernelTls.Generated.", StringComparison.Ordinal)),
        ];
    }

    private static IEnumerable<string> FilesOf(string directory) =>
        Directory.GetFiles(directory).Select(f => Path.GetFileName(f)).Order(StringComparer.OrdinalIgnoreCase);

    private static void AssertTrimmed(string published, string assembly) => Assert.InRange(
        new FileInfo(Path.Combine(published, $"{assembly}.dll")).Length, 1, new FileInfo(Repository.Built(assembly)).Length - 1);

    private static async Task AssertConsoleAsync(string program)
    {
        string platform = $", platform: {KtlsPlatform.Probe().NotSupportedReason}\n";
        string kernel = KtlsPlatform.Probe().IsSupported
            ? $"send=kernel receive={(KtlsPlatform.Probe().OpenSslVersion < new Version(3, 2) ? "openssl (OpenSslTooOld)" : "kernel")}"
            : $"send=managed ({KtlsPlatform.Probe().NotSupportedReason}) receive=managed ({KtlsPlatform.Probe().NotSupportedReason})";

        Assert.Equal($"ping send=managed (NotEnabled) receive=managed (NotEnabled){platform}", await Programs.PingAsync(program));
        Assert.Equal($"ping {OnOpenSsl}{platform}", await Programs.PingAsync(program, (Application.DirectVariable, "1")));
        Assert.Equal($"ping {kernel}{platform}", await Programs.PingAsync(program, (Application.KernelVariable, "1")));
    }

    private static async Task AssertWebAsync(string program)
    {
        using (WebServer server = await WebServer.StartAsync(program))
        {
            Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));
            Assert.False(server.Process.HasLoaded(Repository.Shim));
            Assert.DoesNotContain("KernelTls", await server.Process.KillAsync(), StringComparison.Ordinal);
        }

        using (WebServer server = await WebServer.StartAsync(program, (Application.DirectVariable, "1")))
        {
            Assert.Equal("Hello World!", await server.GetAsync("/", "1.1"));
            Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));
            Assert.True(server.Process.HasLoaded(Repository.Shim));
            Assert.Contains(" uses OpenSSL on the socket, without kernel TLS: NotEnabled.", await server.Process.KillAsync(), StringComparison.Ordinal);
        }
    }
}
