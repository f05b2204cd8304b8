using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Makes packages by eng/pack, and applications as users do: by the SDK's commands, outside of the repository, from a local feed
/// beside the machine's own sources. Each is made once, when a test first asks for it. In a cell of the lab, which has no SDK, the
/// applications are those that the host has made before.
/// </summary>
public sealed class Workshop : IDisposable
{
    private static readonly TimeSpan s_limit = TimeSpan.FromMinutes(8);

    // No build server stays behind and keeps the pipes that its parent wrote to.
    private static readonly (string, string)[] s_environment =
    [
        ("MSBUILDDISABLENODEREUSE", "1"), ("UseSharedCompilation", "false"), ("DOTNET_CLI_USE_MSBUILD_SERVER", "0"),
        ("DOTNET_CLI_TELEMETRY_OPTOUT", "1"), ("DOTNET_NOLOGO", "1"), ("DOTNET_GENERATE_ASPNET_CERTIFICATE", "false"),
    ];

    private readonly TemporaryDirectory _directory = new();
    private readonly Dictionary<string, Task<string>> _made = [];

    /// <summary>The directory with the packages of this source.</summary>
    public Task<string> PackagesAsync() => OnceAsync("packages", async () =>
    {
        string packages = Path.Combine(Repository.Root, "artifacts", "packages");
        await RunAsync(Repository.Root, Repository.Pack);
        return packages;
    });

    /// <summary>The directory of the published application.</summary>
    /// <param name="app">Which.</param>
    /// <param name="name">A name for the way it is published in.</param>
    /// <param name="arguments">For <c>dotnet publish</c>.</param>
    public Task<string> PublishAsync(ConsumerApp app, string name, params string[] arguments) => OnceAsync(name, async () =>
    {
        string published = Path.Combine(Repository.Consumers, name);
        if (Cell.IsLab)
        {
            AssertCurrent(published);
            return published;
        }

        string project = await ProjectAsync(app);
        if (Directory.Exists(published))
        {
            Directory.Delete(published, recursive: true);
        }

        string said = await RunAsync(project, "dotnet", ["publish", .. arguments, "--output", published]);
        Assert.DoesNotContain("warning ", said, StringComparison.Ordinal);
        return published;
    });

    /// <summary>The tool's program, installed from its package.</summary>
    public Task<string> ToolAsync() => OnceAsync("tool", async () =>
    {
        await FeedAsync();
        await RunAsync(_directory.FullName, "dotnet", "tool", "install", "KernelTls.Tool", "--tool-path", _directory["tool"]);
        return Path.Combine(_directory["tool"], "ktls");
    });

    /// <summary>Runs a command of the SDK or of eng/ to its good end; what it has said.</summary>
    internal static async Task<string> RunAsync(string directory, string program, params string[] arguments)
    {
        using Application command = Start(directory, program, arguments);
        return await command.SucceedAsync(s_limit);
    }

    /// <summary>As <see cref="RunAsync"/>, to whatever end.</summary>
    internal static async Task<(int Code, string Said)> TryAsync(string directory, string program, params string[] arguments)
    {
        using Application command = Start(directory, program, arguments);
        return (await command.ExitAsync(s_limit), command.Said);
    }

    public void Dispose() => _directory.Dispose();

    private static Application Start(string directory, string program, string[] arguments)
    {
        Assert.False(Cell.IsLab, "There is no SDK in a cell: this runs on the host.");
        return Application.Start(program, directory, s_environment, arguments);
    }

    /// <summary>It is there, and has this build's library, not one of last week.</summary>
    private static void AssertCurrent(string published)
    {
        string library = Path.Combine(published, "KernelTls.dll");
        Assert.True(File.Exists(library), $"{published} is not there: run KernelTls.PackageTests on the host first, as eng/test does.");
        Assert.True(
            File.ReadAllBytes(library).AsSpan().SequenceEqual(File.ReadAllBytes(Repository.Built("KernelTls"))),
            $"{published} was made from other sources: run KernelTls.PackageTests on the host first, as eng/test does.");
    }

    private Task<string> ProjectAsync(ConsumerApp app) => OnceAsync($"{app.Name} project", async () =>
    {
        await FeedAsync();
        await RunAsync(_directory.FullName, "dotnet", "new", app.Template, "--output", app.Name);
        string project = _directory[app.Name];
        if (app.Package is { } package)
        {
            await RunAsync(project, "dotnet", "add", "package", package);
        }

        if (app.Library is { } library)
        {
            await RunAsync(project, "dotnet", "add", "reference", await ProjectAsync(library));
        }

        if (app.Program is { } program)
        {
            File.Copy(
                Path.Combine(Repository.Root, "tests", "KernelTls.PackageTests", "Apps", program),
                Path.Combine(project, "Program.cs"),
                overwrite: true);
        }

        return project;
    });

    /// <summary>
    /// The local feed, beside the sources that the machine is configured with. Packages are unpacked in a folder of its own, where
    /// what was downloaded once stays; ours have the same version from run to run, and go.
    /// </summary>
    private Task<string> FeedAsync() => OnceAsync("feed", async () =>
    {
        string packages = await PackagesAsync();
        string unpacked = Path.Combine(Repository.Consumers, ".packages");
        Directory.CreateDirectory(unpacked);
        foreach (string old in Directory.GetDirectories(unpacked, "kerneltls*"))
        {
            Directory.Delete(old, recursive: true);
        }

        string configuration = _directory["nuget.config"];
        File.WriteAllText(configuration, $"""
            <configuration>
              <config>
                <add key="globalPackagesFolder" value="{unpacked}" />
              </config>
              <packageSources>
                <add key="kerneltls" value="{packages}" />
              </packageSources>
            </configuration>
            """);
        return configuration;
    });

    private Task<string> OnceAsync(string what, Func<Task<string>> make) =>
        _made.TryGetValue(what, out Task<string>? made) ? made : _made[what] = make();
}
