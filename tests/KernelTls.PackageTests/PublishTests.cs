using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>The forms that applications are published in. OpenSSL on the socket shows, without a kernel, that every part came along.</summary>
public class PublishTests(Workshop workshop)
{
    private const string OnOpenSsl = "send=openssl (DirectOpenSsl) receive=openssl (DirectOpenSsl)";

    [Fact]
    public async Task Console()
    {
        string published = await workshop.PublishAsync(ConsumerApp.Console, "console");

        Assert.Equal(
            ["linux-arm64", "linux-musl-x64", "linux-x64"],
            Directory.GetDirectories(Path.Combine(published, "runtimes")).Select(Path.GetFileName).Order(StringComparer.Ordinal));
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
    /// It cannot be started on a machine without musl's runtime of .NET, whose packs not every feed has. That the shim works there
    /// is shown by <c>eng/native --test</c>; this is the same file, and musl's loader binds all that it needs.
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

    /// <summary>linux-arm has no shim in the package; its assemblies run here as they would there.</summary>
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
            await PingAsync(Path.Combine(console, "console.dll"), (Application.KernelVariable, "1")));
        using WebServer server = await WebServer.StartAsync(Path.Combine(web, "web.dll"), (Application.KernelVariable, "1"));
        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));
        Assert.Contains(
            "Kernel TLS is not to be had (NativeLibraryMissing)", await server.Process.KillAsync(), StringComparison.Ordinal);
    }

    private static IEnumerable<string> FilesOf(string directory) =>
        Directory.GetFiles(directory).Select(f => Path.GetFileName(f)).Order(StringComparer.OrdinalIgnoreCase);

    private static void AssertTrimmed(string published, string assembly) => Assert.InRange(
        new FileInfo(Path.Combine(published, $"{assembly}.dll")).Length, 1, new FileInfo(Repository.Built(assembly)).Length - 1);

    private static async Task AssertConsoleAsync(string program)
    {
        string platform = $", platform: {KtlsPlatform.NotSupportedReason}\n";
        string kernel = KtlsPlatform.IsSupported
            ? $"send=kernel receive={(KtlsPlatform.OpenSslVersion < new Version(3, 2) ? "openssl (OpenSslTooOld)" : "kernel")}"
            : $"send=managed ({KtlsPlatform.NotSupportedReason}) receive=managed ({KtlsPlatform.NotSupportedReason})";

        Assert.Equal($"ping send=managed (NotEnabled) receive=managed (NotEnabled){platform}", await PingAsync(program));
        Assert.Equal($"ping {OnOpenSsl}{platform}", await PingAsync(program, (Application.DirectVariable, "1")));
        Assert.Equal($"ping {kernel}{platform}", await PingAsync(program, (Application.KernelVariable, "1")));
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
            Assert.Contains(" is served by OpenSSL on the socket, without the kernel (DirectOpenSsl).", await server.Process.KillAsync(), StringComparison.Ordinal);
        }
    }

    /// <summary>What the application says of its connection to a stock server.</summary>
    private static async Task<string> PingAsync(string program, params (string, string)[] environment)
    {
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        using Application application = Programs.Start(
            program, environment, $"{((IPEndPoint)listener.LocalEndpoint).Port}");
        using TcpClient connection = await listener.AcceptTcpClientAsync().InTime("the application to connect");
        await using SslStream server = new(connection.GetStream());
        await server.AuthenticateAsServerAsync(new SslServerAuthenticationOptions { ServerCertificateContext = Certificates.EcdsaContext })
            .InTime("the handshake");
        byte[] ping = new byte[4];
        await server.ReadExactlyAsync(ping).InTime("the application's bytes");
        await server.WriteAsync(ping).InTime("the answer");
        return await application.SucceedAsync();
    }
}
