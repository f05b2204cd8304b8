using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests deployments that lack a part of this library, or have it from another build. The application works as without the package, and says what is missing if the variable
/// is set.
/// </summary>
[Trait("loop", "outer")]
public sealed class LackingDeploymentTests(Workshop workshop) : IDisposable
{
    private const string Shim = $"runtimes/linux-x64/native/{Repository.Shim}";

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData("runtimes", "NativeLibraryMissing")]
    [InlineData(Shim, "NativeLibraryMissing")]
    [InlineData($"{Shim}, another", "NativeLibraryMismatch")]
    [InlineData("KernelTls.dll", "Kernel TLS is not available, because the assembly KernelTls cannot be loaded.")]
    [InlineData("KernelTls.dll, damaged", "Kernel TLS is not available, because the assembly KernelTls cannot be loaded.")]
    public async Task A_web_application(string lacks, string reason)
    {
        string program = Path.Combine(Lacking(await workshop.PublishAsync(ConsumerApp.Web, "web"), lacks), "web.dll");

        Assert.DoesNotContain("KernelTls", await ServeAsync(program), StringComparison.Ordinal);
        Assert.DoesNotContain("KernelTls", await ServeAsync(program, (Application.KernelVariable, "0")), StringComparison.Ordinal);
        Assert.Contains(reason, await ServeAsync(program, (Application.KernelVariable, "1")), StringComparison.Ordinal);
    }

    /// <summary>
    /// The application's attribute names this assembly. ASP.NET Core reports that the assembly is missing, and starts the application.
    /// </summary>
    [Fact]
    public async Task A_web_application_without_the_assembly_that_it_names()
    {
        string program = Path.Combine(Lacking(await workshop.PublishAsync(ConsumerApp.Web, "web"), "KernelTls.AspNetCore.dll"), "web.dll");

        Assert.Contains("Hosting startup assembly exception", await ServeAsync(program), StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("runtimes", "NativeLibraryMissing")]
    [InlineData(Shim, "NativeLibraryMissing")]
    [InlineData($"{Shim}, another", "NativeLibraryMismatch")]
    public async Task A_console_application(string lacks, string reason)
    {
        string program = Path.Combine(Lacking(await workshop.PublishAsync(ConsumerApp.Console, "console"), lacks), "console.dll");

        Assert.StartsWith("ping send=managed (NotEnabled) receive=managed (NotEnabled)", await Programs.PingAsync(program), StringComparison.Ordinal);
        Assert.Equal(
            $"ping send=managed ({reason}) receive=managed ({reason}), platform: {reason}\n",
            await Programs.PingAsync(program, (Application.KernelVariable, "1")));
    }

    /// <summary>An application whose own code names the library, written or woven, cannot run that code without it.</summary>
    [Fact]
    public async Task A_console_application_without_the_assembly_that_it_names()
    {
        string program = Path.Combine(Lacking(await workshop.PublishAsync(ConsumerApp.Console, "console"), "KernelTls.dll"), "console.dll");

        (int code, string said) = await Workshop.TryAsync(_directory.FullName, "sh", "-c", "exec dotnet \"$0\" 1 2>&1", program);

        Assert.NotEqual(0, code);
        Assert.Contains("FileNotFoundException: Could not load file or assembly 'KernelTls, ", said, StringComparison.Ordinal);
    }

    /// <summary>Starts a web application, which answers, and returns its output, which has no error.</summary>
    private static async Task<string> ServeAsync(string program, params (string, string)[] environment)
    {
        using WebServer server = await WebServer.StartAsync(program, environment);
        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));
        string said = await server.Process.KillAsync();
        Assert.DoesNotContain("fail: ", said, StringComparison.Ordinal);
        return said;
    }

    /// <summary>Returns a copy of the published application without a file or a folder, or with another file in its place.</summary>
    private string Lacking(string published, string lacks)
    {
        string copy = _directory["application"];
        foreach (string file in Directory.GetFiles(published, "*", SearchOption.AllDirectories))
        {
            string path = Path.GetRelativePath(published, file);
            if (path == lacks || path.StartsWith($"{lacks}/", StringComparison.Ordinal))
            {
                continue;
            }

            Directory.CreateDirectory(Path.GetDirectoryName(Path.Combine(copy, path))!);
            File.Copy(file, Path.Combine(copy, path));
            if (lacks == $"{path}, damaged")
            {
                File.WriteAllText(Path.Combine(copy, path), "damaged");
            }
            else if (lacks == $"{path}, another")
            {
                OtherShim.RemoveExports(Path.Combine(copy, path), "KtlsNative_GetInterface", "KtlsNative_ConnectionCreate");
            }
        }

        return copy;
    }
}
