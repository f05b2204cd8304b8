using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests applications for musl, on a machine that has both C libraries: the hook and <c>ktls weave</c> take the shim for the process.
/// </summary>
/// <remarks>
/// They are self-contained, on .NET's packages for linux-musl-x64. musl, and an OpenSSL for it, which is built once and takes minutes (eng/musl),
/// are mounted where the applications look for them, in a mount namespace, so that a cell needs only the folder of published applications.
/// They have the trait "outer" as well, so that they run with the applications only, not with the other tests of the project.
/// </remarks>
[Trait("cell", "programs")]
[Trait("loop", "outer")]
[Trait("loop", "weekly")]
public sealed class MuslTests(Workshop workshop) : IDisposable
{
    private const string Platform = "linux-musl-x64";

    // A folder of the tmpfs that hides /opt.
    private const string Mounted = "/opt/musl";

    private static readonly string s_musl = Path.Combine(Repository.Consumers, "musl");

    private static readonly bool s_kernel = KtlsPlatform.Probe().IsSupported;

    private static readonly (string, string) s_direct = (Application.DirectVariable, "1");

    // There is no ICU for musl here, and its OpenSSL is version 3 in every cell.
    private static readonly (string, string)[] s_environment = [("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1"), ("DOTNET_OPENSSL_VERSION_OVERRIDE", "3")];

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task A_web_application()
    {
        string published = await PublishAsync(ConsumerApp.Unchanged("web"), "unchanged-web-musl");
        using WebServer server = await WebServer.RunAsync(published, OnMusl(Ktls(Path.Combine(published, "unchanged-web"))), [s_direct, .. s_environment]);
        KernelCount kernel = new() { Receives = s_kernel };

        Assert.Equal("Hello World!", await server.GetAsync("/", "1.1"));
        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));

        kernel.AssertEnds(server.Connections, used: 2);
        AssertHasShimOfBundle(server.Process);
        Assert.Contains(
            s_kernel ? " uses kernel TLS." : $" uses OpenSSL on the socket, without kernel TLS: {KtlsPlatform.Probe().NotSupportedReason}.",
            await server.Process.KillAsync(),
            StringComparison.Ordinal);
    }

    [Fact]
    public async Task The_client_factory_of_a_worker()
    {
        string published = await PublishAsync(ConsumerApp.Worker, "unchanged-worker-musl");
        using WebServer server = await WebServer.StartAsync(
            Path.Combine(await workshop.PublishAsync(ConsumerApp.Unchanged("web"), "unchanged-web"), "unchanged-web.dll"));

        using Application worker = Programs.Run(
            published,
            OnMusl(Ktls(Path.Combine(published, "unchanged-worker"))),
            [s_direct, .. s_environment, ("PEER", $"{server.Address}"), ("SSL_CERT_FILE", Certificates.WriteAuthority(_directory.FullName)), ("KERNELTLS_LOG", "1")]);
        string said = await worker.SucceedAsync();

        Assert.Contains("Hello World!\n", said, StringComparison.Ordinal);
        Assert.Matches($"KernelTls: connections.* {(s_kernel ? "send=kernel receive=kernel" : "send=openssl")}.* client, ", said);
        Assert.DoesNotContain("stock", said, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_console_application_that_is_woven()
    {
        using PublishedFolder folder = new(await PublishAsync(new ConsumerApp("unwoven", "console", "Npgsql", Program: "Woven.cs"), "unwoven-musl"));

        await folder.WeaveAsync(0);

        Assert.Equal(File.ReadAllBytes(Path.Combine(Repository.Shims, Platform, Repository.Shim)), File.ReadAllBytes(folder[Repository.Shim]));
        Assert.DoesNotContain("HandshakeCompleted", await OpenAsync(), StringComparison.Ordinal);
        Assert.Contains("HandshakeCompleted: OpenSsl NotEnabled OpenSsl NotEnabled Npgsql", await OpenAsync(s_direct), StringComparison.Ordinal);
        Assert.Contains(
            s_kernel ? "HandshakeCompleted: Kernel None Kernel None Npgsql" : $"Fallback: {KtlsPlatform.Probe().NotSupportedReason}",
            await OpenAsync((Application.KernelVariable, "1")),
            StringComparison.Ordinal);

        async Task<string> OpenAsync(params (string, string)[] toggle)
        {
            using FakePostgres server = new();
            using Application application = Programs.Run(folder.FullName, OnMusl(folder["unwoven"], server.Port), [.. s_environment, .. toggle]);
            await server.ServeAsync();
            string said = await application.SucceedAsync();
            Assert.Contains($"the server says: {FakePostgres.Refusal}", said, StringComparison.Ordinal);
            return said;
        }
    }

    private static string[] Ktls(string program) => ["dotnet", HookBundle.Tool, "run", "--", program];

    /// <summary>Returns the command in a mount namespace that has musl. A preloaded library of the cell is one for the other C library.</summary>
    private static string[] OnMusl(params string[] command) =>
    [
        "unshare", "--mount", "sh", "-c",
        $"mkdir -p /opt && mount -t tmpfs none /opt && mkdir {Mounted} && mount --bind {s_musl} {Mounted} && unset LD_PRELOAD && exec \"$@\"", "sh",
        .. command,
    ];

    private static void AssertHasShimOfBundle(Application process)
    {
        Assert.True(process.HasLoaded($"bundle/runtimes/{Platform}/native/{Repository.Shim}"));
        Assert.False(process.HasLoaded($"bundle/runtimes/linux-x64/native/{Repository.Shim}"));
    }

    /// <summary>Publishes an application whose program finds musl where it is mounted.</summary>
    private async Task<string> PublishAsync(ConsumerApp app, string name)
    {
        string published = await workshop.PublishAsync(app, name, "--runtime", Platform, "--self-contained");
        if (Workshop.HasSdk)
        {
            string root = (await Workshop.RunAsync(Repository.Root, Repository.Lab, "--musl-root")).TrimEnd().Split('\n')[^1];
            await Workshop.RunAsync(published, "sh", "-c", $"mkdir -p '{s_musl}' && cp -rL '{root}/.' '{s_musl}'");
            await Workshop.RunAsync(
                published, "patchelf", "--set-interpreter", $"{Mounted}/ld-musl-x86_64.so.1", "--set-rpath", Mounted, Path.Combine(published, app.Name));
        }

        return published;
    }
}
