using System.Text;
using KernelTls.Interop;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests that a start-up hook that cannot do its work leaves the application as it is without the variable, on stock TLS, and says why in
/// one line.
/// </summary>
[Trait("loop", "outer")]
public sealed class HookFaultTests(Workshop workshop) : IDisposable
{
    private const string Prefix = "KernelTls: the start-up hook does not reach this application, which uses the stock TLS. ";
    private const string Shim = $"runtimes/linux-x64/native/{Repository.Shim}";

    private static readonly (string, string) s_toggle = (Application.KernelVariable, "1");

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData("KernelTls.dll", "FileNotFoundException: ")]
    [InlineData("KernelTls.AspNetCore.dll", "FileNotFoundException: ")]
    public async Task A_bundle_that_lacks_an_assembly(string lacks, string expected)
    {
        string bundle = HookBundle.CopyTo(_directory["bundle"]);
        File.Delete(Path.Combine(bundle, lacks));

        Assert.Contains(Prefix + expected, await ServeAsync(bundle), StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("KernelTls.dll")]
    [InlineData("KernelTls.AspNetCore.dll")]
    public async Task A_bundle_with_a_damaged_assembly(string damaged)
    {
        string bundle = HookBundle.CopyTo(_directory["bundle"]);
        File.WriteAllText(Path.Combine(bundle, damaged), "damaged");

        Assert.Contains($"{Prefix}BadImageFormatException: ", await ServeAsync(bundle), StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("KernelTls.dll")]
    [InlineData("KernelTls.AspNetCore.dll")]
    public async Task A_bundle_of_two_versions(string other)
    {
        string bundle = HookBundle.CopyTo(_directory["bundle"]);
        HookBundle.SetMajorVersion(Path.Combine(bundle, other), 7);

        Assert.Contains($"{Prefix}{bundle}/{other} is version 7.1.0.0, and the hook is version 0.1.0.0. Copy the whole bundle.", await ServeAsync(bundle), StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_bundle_without_the_shim()
    {
        string bundle = HookBundle.CopyTo(_directory["bundle"]);
        File.Delete(Path.Combine(bundle, Shim));

        Assert.Contains("uses the default SslStream-based TLS: NativeLibraryMissing. ", await ServeAsync(bundle), StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("linux-arm64")]
    [InlineData("damaged")]
    public async Task A_bundle_with_the_shim_of_another_platform(string platform)
    {
        string bundle = HookBundle.CopyTo(_directory["bundle"]);
        string wrong = Path.Combine(bundle, "runtimes", platform, "native", Repository.Shim);
        File.WriteAllBytes(Path.Combine(bundle, Shim), platform == "damaged" ? [1, 2, 3] : File.ReadAllBytes(wrong));

        Assert.Contains("uses the default SslStream-based TLS: NativeLibraryMissing. ", await ServeAsync(bundle), StringComparison.Ordinal);
    }

    /// <summary>Each lacks a function that a connection needs, so nothing may call it.</summary>
    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_bundle_with_the_shim_of_another_build(bool older)
    {
        string bundle = HookBundle.CopyTo(_directory["bundle"]);
        string shim = Path.Combine(bundle, Shim);
        OtherShim.RemoveExports(shim, "KtlsNative_ConnectionCreate");
        if (older)
        {
            OtherShim.RemoveExports(shim, "KtlsNative_GetInterface");
        }
        else
        {
            OtherShim.SetInterface(shim, KtlsNative.Interface, 0x123456789);
        }

        string said = await ServeAsync(bundle, null, (Application.DirectVariable, "1"));

        Assert.Contains("uses the default SslStream-based TLS: NativeLibraryMismatch. libKernelTls.Native.so is of another build ", said, StringComparison.Ordinal);
        Assert.DoesNotContain("EntryPointNotFoundException", said, StringComparison.Ordinal);
    }

    [Fact]
    public async Task An_application_with_an_older_version_keeps_it()
    {
        string published = await workshop.PublishAsync(ConsumerApp.Web, "web");
        string bundle = NewVersion(7);

        string said = await ServeAsync(bundle, Path.Combine(published, "web.dll"));

        Assert.Contains($"{Prefix}The application has KernelTls 0.1.0.0, and the bundle in {bundle} is 7.1.0.0.", said, StringComparison.Ordinal);
    }

    /// <summary>The application's own is used, with its own start-up.</summary>
    [Theory]
    [InlineData(0)]
    [InlineData(7)]
    public async Task An_application_with_the_same_or_a_newer_version_keeps_it(ushort version)
    {
        string application = _directory["application"];
        Copy(await workshop.PublishAsync(ConsumerApp.Web, "web"), application);
        foreach (string assembly in Directory.GetFiles(application, "KernelTls*.dll"))
        {
            HookBundle.SetMajorVersion(assembly, version);
        }

        using WebServer server = await WebServer.RunAsync(
            application, ["dotnet", Path.Combine(application, "web.dll")], HookBundle.Variable(HookBundle.FullPath), s_toggle, (Application.DirectVariable, "1"));
        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));
        Assert.True(server.Process.HasLoaded($"application/{Repository.Shim}") || server.Process.HasLoaded($"application/{Shim}"));
        Assert.False(server.Process.HasLoaded("bundle/KernelTls.dll"));
        Assert.DoesNotContain("start-up hook", await server.Process.KillAsync(), StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_bundle_without_the_part_for_workers_is_of_no_interest_to_a_web_application()
    {
        string bundle = HookBundle.CopyTo(_directory["bundle"]);
        File.Delete(Path.Combine(bundle, "KernelTls.Hosting.dll"));

        string said = await ServeAsync(bundle);

        Assert.DoesNotContain(Prefix, said, StringComparison.Ordinal);
        Assert.Contains(" uses ", said, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_worker_with_a_bundle_that_lacks_its_part()
    {
        string bundle = HookBundle.CopyTo(_directory["bundle"]);
        File.Delete(Path.Combine(bundle, "KernelTls.Hosting.dll"));

        // The runtime writes the events to a file.
        string trace = _directory["events.nettrace"];
        string said = await WorkAsync(
            ConsumerApp.Worker, bundle, ("DOTNET_EnableEventPipe", "1"), ("DOTNET_EventPipeOutputPath", trace), ("DOTNET_EventPipeConfig", "KernelTls.StartupHook:ffffffff:5"));

        Assert.Contains($"{Prefix}FileNotFoundException: ", said, StringComparison.Ordinal);
        Assert.True(File.ReadAllBytes(trace).AsSpan().IndexOf(Encoding.Unicode.GetBytes("FileNotFoundException: Could not load file or assembly 'KernelTls.Hosting")) > 0);
    }

    /// <summary>KernelTls.Hosting refers to version 8 of the packages.</summary>
    [Theory]
    [InlineData("8.0.0", "")]
    [InlineData("6.0.0", Prefix + "The application has Microsoft.Extensions.Http 6.0.0.0, and the bundle needs 8.0 or later.")]
    public async Task A_worker_with_an_older_client_factory(string version, string expected)
    {
        ConsumerApp worker = ConsumerApp.Worker with { Name = $"worker-{version[0]}", Package = $"Microsoft.Extensions.Http@{version}" };

        string said = await WorkAsync(worker, HookBundle.FullPath);

        Assert.Contains(expected, said, StringComparison.Ordinal);
        Assert.Equal(expected.Length != 0, said.Contains("KernelTls", StringComparison.Ordinal));
    }

    /// <summary>Child processes of any version inherit the variable.</summary>
    [Fact]
    public async Task On_an_older_NET_it_does_nothing()
    {
        Directory.CreateDirectory(_directory["older"]);
        await File.WriteAllTextAsync(_directory["older/older.csproj"], """
            <Project Sdk="Microsoft.NET.Sdk">
              <PropertyGroup><OutputType>Exe</OutputType><TargetFramework>net8.0</TargetFramework><ImplicitUsings>enable</ImplicitUsings></PropertyGroup>
            </Project>
            """);
        File.Copy(Path.Combine(Repository.Root, "tests", "KernelTls.PackageTests", "Apps", "Older.cs"), _directory["older/Program.cs"]);
        await workshop.BuildAsync(_directory["older"], "--target:Publish", $"-p:PublishDir={_directory["published"]}/", "--runtime", "linux-x64", "--self-contained");

        using Application without = Programs.Run(_directory["published"], [_directory["published/older"]]);
        Assert.Equal(".NET 8 loaded: \n", await without.SucceedAsync());
        using Application with = Programs.Run(_directory["published"], [_directory["published/older"]], HookBundle.Variable(HookBundle.FullPath), s_toggle);
        Assert.Equal(".NET 8 loaded: KernelTls.StartupHook\n", await with.SucceedAsync());
    }

    /// <summary>An installed tool is a program for .NET as others are; this one has a library of its own.</summary>
    [Fact]
    public async Task An_installed_tool_says_the_same()
    {
        string[] command = [await workshop.ToolAsync(), "info"];

        using Application without = Programs.Run(_directory.FullName, command, s_toggle);
        int code = await without.ExitAsync();
        using Application with = Programs.Run(_directory.FullName, command, s_toggle, HookBundle.Variable(HookBundle.FullPath));
        Assert.Equal(code, await with.ExitAsync());
        Assert.NotEmpty(without.Said);
        Assert.Equal(without.Said, with.Said);
    }

    /// <summary>.NET ends the process before Main, which the documents warn of.</summary>
    [Fact]
    public async Task A_hook_that_does_not_exist()
    {
        string published = await workshop.PublishAsync(ConsumerApp.Unchanged("web"), "unchanged-web");
        string missing = _directory["KernelTls.StartupHook.dll"];

        using Application program = Programs.Run(published, ["dotnet", Path.Combine(published, "unchanged-web.dll")], (HookBundle.HooksVariable, missing));

        Assert.Equal(134, await program.ExitAsync());
        Assert.Contains(missing, program.Said, StringComparison.Ordinal);
        Assert.DoesNotContain("Now listening", program.Said, StringComparison.Ordinal);
    }

    /// <summary>Without ICU .NET ends a process, unless it is invariant: with the hook and without it.</summary>
    [Fact]
    public async Task On_a_machine_without_ICU()
    {
        string published = await workshop.PublishAsync(ConsumerApp.Unchanged("web"), "unchanged-web");
        string[] command =
        [
            "unshare", "--mount", "sh", "-c",
            "for file in $(find /lib/ /usr/lib/ -name 'libicu*.so.*' -type f); do mount --bind /dev/null $file || exit 9; done; exec \"$@\"", "sh",
            "dotnet", Path.Combine(published, "unchanged-web.dll"),
        ];

        using Application without = Programs.Run(published, command);
        int code = await without.ExitAsync();
        using Application with = Programs.Run(published, command, HookBundle.Variable(HookBundle.FullPath), s_toggle);
        Assert.Equal(134, code);
        Assert.Equal(code, await with.ExitAsync());
        Assert.Contains("Couldn't find a valid ICU package", without.Said, StringComparison.Ordinal);
        Assert.Equal(without.Said.Split('\n')[..2], with.Said.Split('\n')[..2]);

        using WebServer server = await WebServer.RunAsync(
            published, command, HookBundle.Variable(HookBundle.FullPath), (Application.DirectVariable, "1"), ("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1"));
        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));
        Assert.Contains(" uses OpenSSL on the socket, without kernel TLS: NotEnabled.", await server.Process.KillAsync(), StringComparison.Ordinal);
    }

    /// <summary>.NET skips the hook of a trimmed application, and NativeAOT has none: the tool says so.</summary>
    [Fact]
    public async Task Applications_that_have_no_hooks_are_named()
    {
        string trimmed = await workshop.PublishAsync(
            ConsumerApp.Unchanged("web"), "unchanged-web-trimmed", "--runtime", "linux-x64", "--self-contained", "-p:PublishTrimmed=true");
        string single = await workshop.PublishAsync(
            ConsumerApp.Unchanged("web"), "unchanged-web-trimmed-single-file", "--runtime", "linux-x64", "--self-contained", "-p:PublishTrimmed=true", "-p:PublishSingleFile=true");
        string native = await workshop.PublishAsync(
            ConsumerApp.WithNpgsql, "woven-native", "--runtime", "linux-x64", "-p:PublishAot=true", "-p:EventSourceSupport=true");

        foreach ((string folder, string reason) in new[] { (trimmed, "unchanged-web.runtimeconfig.json has System.StartupHookProvider.IsSupported: false"), (single, "unchanged-web has System.StartupHookProvider.IsSupported: false") })
        {
            using WebServer server = await WebServer.RunAsync(folder, ["dotnet", HookBundle.Tool, "run", "--", Path.Combine(folder, "unchanged-web")]);
            Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));
            string said = await server.Process.KillAsync();
            Assert.Contains("ktls: kernel TLS does not reach unchanged-web, which is started on the stock TLS. ", said, StringComparison.Ordinal);
            Assert.Contains(reason, said, StringComparison.Ordinal);
        }

        using Application program = Programs.Run(native, ["dotnet", HookBundle.Tool, "run", "--", Path.Combine(native, "woven"), "no-such-argument"]);
        _ = await program.ExitAsync();
        Assert.Contains("is compiled ahead of time (NativeAOT), and has no start-up hooks.", program.Said, StringComparison.Ordinal);
    }

    /// <summary>Starts an application with a bundle. It answers, and its output, which is returned, has no error.</summary>
    private async Task<string> ServeAsync(string bundle, string? program = null, params (string, string)[] environment)
    {
        program ??= Path.Combine(await workshop.PublishAsync(ConsumerApp.Unchanged("web"), "unchanged-web"), "unchanged-web.dll");
        using WebServer server = await WebServer.RunAsync(Path.GetDirectoryName(program)!, ["dotnet", program], [HookBundle.Variable(bundle), s_toggle, .. environment]);
        Assert.Equal("Hello World!", await server.GetAsync("/", "1.1"));
        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));
        string said = await server.Process.KillAsync();
        Assert.DoesNotContain("fail: ", said, StringComparison.Ordinal);
        Assert.DoesNotContain("   at ", said, StringComparison.Ordinal);
        Assert.InRange(said.Split(Prefix).Length - 1, 0, 1);
        return said;
    }

    /// <summary>Runs a worker, which makes its request, and returns its output.</summary>
    private async Task<string> WorkAsync(ConsumerApp worker, string bundle, params (string, string)[] environment)
    {
        string published = await workshop.PublishAsync(worker, worker.Name);
        using WebServer server = await WebServer.StartAsync(Path.Combine(await workshop.PublishAsync(ConsumerApp.Unchanged("web"), "unchanged-web"), "unchanged-web.dll"));
        using Application application = Programs.Run(
            published,
            ["dotnet", Path.Combine(published, $"{worker.Name}.dll")],
            [HookBundle.Variable(bundle), s_toggle, ("PEER", $"{server.Address}"), ("SSL_CERT_FILE", Certificates.WriteAuthority(_directory.FullName)), .. environment]);
        string said = await application.SucceedAsync();
        Assert.Contains("Hello World!\n", said, StringComparison.Ordinal);
        Assert.Contains("True\n", said, StringComparison.Ordinal);
        return said;
    }

    private string NewVersion(ushort version)
    {
        string bundle = HookBundle.CopyTo(_directory["bundle"]);
        foreach (string assembly in Directory.GetFiles(bundle, "*.dll"))
        {
            HookBundle.SetMajorVersion(assembly, version);
        }

        return bundle;
    }

    private static void Copy(string from, string to)
    {
        foreach (string file in Directory.GetFiles(from, "*", SearchOption.AllDirectories))
        {
            string copy = Path.Combine(to, Path.GetRelativePath(from, file));
            Directory.CreateDirectory(Path.GetDirectoryName(copy)!);
            File.Copy(file, copy);
        }
    }
}
