using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>Tests that the hook takes the shim for the C library of the process, on a machine that has both.</summary>
/// <remarks>musl's OpenSSL is built once, which takes minutes (eng/musl).</remarks>
[Trait("loop", "weekly")]
public class MuslHookTests(Workshop workshop)
{
    [Fact]
    public async Task A_web_application_on_musl()
    {
        string published = await workshop.PublishAsync(
            ConsumerApp.Unchanged("web"), "unchanged-web-musl", "--runtime", "linux-musl-x64", "--self-contained");
        string program = Path.Combine(published, "unchanged-web");
        string root = (await Workshop.RunAsync(Repository.Root, Repository.Lab, "--musl-root")).TrimEnd().Split('\n')[^1];
        await Workshop.RunAsync(published, "patchelf", "--set-interpreter", Path.Combine(root, "ld-musl-x86_64.so.1"), "--set-rpath", root, program);

        // There is no ICU for musl here.
        using WebServer server = await WebServer.RunAsync(
            published, [program], HookBundle.Variable(HookBundle.FullPath), (Application.DirectVariable, "1"), ("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1"));
        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));

        Assert.True(server.Process.HasLoaded($"bundle/runtimes/linux-musl-x64/native/{Repository.Shim}"));
        Assert.False(server.Process.HasLoaded($"bundle/runtimes/linux-x64/native/{Repository.Shim}"));
        Assert.Contains(" uses OpenSSL on the socket, without kernel TLS: NotEnabled.", await server.Process.KillAsync(), StringComparison.Ordinal);
    }
}
