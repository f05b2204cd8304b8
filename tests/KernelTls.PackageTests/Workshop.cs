using System.Runtime.InteropServices;
using System.Security.Cryptography;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Builds packages by eng/pack, and applications as users do: by the SDK's commands, outside the repository, from a
/// local feed in addition to the machine's sources.
/// </summary>
/// <remarks>
/// Each is built once, on first use. In a lab cell and on .NET 11, which have no SDK, the applications are those that the host has
/// built before.
/// </remarks>
public sealed class Workshop : IDisposable
{
    private static readonly TimeSpan s_limit = TimeSpan.FromMinutes(20);

    // No build server may remain and keep its parent's pipes open.
    private static readonly (string, string)[] s_environment =
    [
        ("MSBUILDDISABLENODEREUSE", "1"), ("UseSharedCompilation", "false"), ("DOTNET_CLI_USE_MSBUILD_SERVER", "0"),
        ("DOTNET_CLI_TELEMETRY_OPTOUT", "1"), ("DOTNET_NOLOGO", "1"), ("DOTNET_GENERATE_ASPNET_CERTIFICATE", "false"),
    ];

    /// <summary>Gets a value that indicates whether applications can be built here. Otherwise they are those that the host has built before.</summary>
    internal static bool HasSdk { get; } =
        !Cell.IsLab && Directory.Exists(Path.Combine(RuntimeEnvironment.GetRuntimeDirectory(), "..", "..", "..", "sdk"));

    private readonly TemporaryDirectory _directory = new();
    private readonly Dictionary<string, Task<string>> _made = [];

    /// <summary>
    /// Returns the directory with the packages of this source: KERNELTLS_PACKAGES, if an earlier program of a run has made them.
    /// </summary>
    public Task<string> PackagesAsync() => OnceAsync("packages", async () =>
    {
        if (Environment.GetEnvironmentVariable("KERNELTLS_PACKAGES") is { Length: > 0 } made)
        {
            Assert.True(Directory.Exists(made), $"{made} is not there.");
            return made;
        }

        string packages = Path.Combine(Repository.Root, "artifacts", "packages");
        await RunAsync(Repository.Root, Repository.Pack);
        return packages;
    });

    /// <summary>Returns the directory of the published application.</summary>
    /// <param name="app">The application.</param>
    /// <param name="name">The name of the form in which it is published.</param>
    /// <param name="arguments">The arguments for <c>dotnet publish</c>.</param>
    public Task<string> PublishAsync(ConsumerApp app, string name, params string[] arguments) => OnceAsync(name, async () =>
    {
        string published = Path.Combine(Repository.Consumers, name);
        if (!HasSdk)
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
        // The package sources lack the very version that a template names, and have a newer one.
        Assert.DoesNotContain("warning ", said.Replace("warning NU1603", "", StringComparison.Ordinal), StringComparison.Ordinal);
        File.WriteAllText(StampOf(published), Stamp());
        return published;
    });

    /// <summary>Returns the tool's program, installed from its package.</summary>
    public Task<string> ToolAsync() => OnceAsync("tool", async () =>
    {
        await FeedAsync();
        await RunAsync(_directory.FullName, "dotnet", "tool", "install", "KernelTls.Tool", "--tool-path", _directory["tool"]);
        return Path.Combine(_directory["tool"], "ktls");
    });

    /// <summary>Builds a project that a test has written, with the local feed, and returns the detailed output.</summary>
    /// <param name="project">The project's folder. The feed's configuration is written to the folder that contains it.</param>
    /// <param name="arguments">The arguments for <c>dotnet build</c>.</param>
    public async Task<string> BuildAsync(string project, params string[] arguments)
    {
        (int code, string said) = await TryBuildAsync(project, arguments);
        Assert.True(code == 0, said);
        return said;
    }

    /// <summary>Does the same as <see cref="BuildAsync"/>, whatever the exit code.</summary>
    public async Task<(int Code, string Said)> TryBuildAsync(string project, params string[] arguments)
    {
        string configuration = await FeedAsync();
        File.Copy(configuration, Path.Combine(Path.GetDirectoryName(project)!, "nuget.config"), overwrite: true);
        (int code, string said) = await TryAsync(project, "dotnet", ["build", "--verbosity", "normal", "--nologo", .. arguments]);
        return (code, said.Replace("\r", "", StringComparison.Ordinal));
    }

    /// <summary>Creates a project from a template of <c>dotnet new</c>, below the feed's configuration, and returns its folder.</summary>
    public async Task<string> CreateAsync(string template)
    {
        await FeedAsync();
        string project = $"new-{template}";
        await RunAsync(_directory.FullName, "dotnet", "new", template, "--output", project);
        return _directory[project];
    }

    /// <summary>Starts a line of a shell, as a user types it.</summary>
    internal static Application Type(string directory, string line, params (string, string)[] environment)
    {
        Assert.False(Cell.IsLab, "There is no SDK in a cell: this runs on the host.");
        return Application.Start("sh", directory, [.. s_environment, .. environment], "-c", $"{{ {line}\n}} 2>&1");
    }

    /// <summary>Runs a line of a shell, whatever the exit code, and returns what it says on both outputs.</summary>
    internal static async Task<(int Code, string Said)> TryLineAsync(string directory, string line)
    {
        using Application command = Type(directory, line);
        return (await command.ExitAsync(s_limit), command.Said);
    }

    /// <summary>Runs a command of the SDK or of eng/, which must succeed, and returns its output.</summary>
    internal static async Task<string> RunAsync(string directory, string program, params string[] arguments)
    {
        using Application command = Start(directory, program, arguments);
        return await command.SucceedAsync(s_limit);
    }

    /// <summary>Does the same as <see cref="RunAsync"/>, whatever the exit code.</summary>
    internal static async Task<(int Code, string Said)> TryAsync(string directory, string program, params string[] arguments)
    {
        using Application command = Start(directory, program, arguments);
        return (await command.ExitAsync(s_limit), command.Said);
    }

    public void Dispose() => _directory.Dispose();

    private static Application Start(string directory, string program, string[] arguments)
    {
        Assert.True(HasSdk, "The running .NET has no SDK: this runs on the host, on .NET 10.");
        return Application.Start(program, directory, s_environment, arguments);
    }

    /// <summary>Asserts that the application exists and contains this build's library, not an older one.</summary>
    private static void AssertCurrent(string published)
    {
        Assert.True(
            Directory.Exists(published) && File.Exists(StampOf(published)),
            $"{published} is not there: run KernelTls.PackageTests on the host first, as eng/test does.");
        Assert.True(
            File.ReadAllText(StampOf(published)) == Stamp(),
            $"{published} was made from other sources: run KernelTls.PackageTests on the host first, as eng/test does.");
    }

    /// <summary>Returns the path of the stamp, beside the published folder, because that may be a single file.</summary>
    private static string StampOf(string published) => published + ".library";

    private static string Stamp() => Convert.ToHexString(SHA256.HashData(File.ReadAllBytes(Repository.Built("KernelTls"))));

    private Task<string> ProjectAsync(ConsumerApp app) => OnceAsync($"{app.Name} project", async () =>
    {
        await FeedAsync();
        await RunAsync(_directory.FullName, "dotnet", "new", app.Template, "--output", app.Name);
        string project = _directory[app.Name];
        foreach (string package in app.Package?.Split(' ') ?? [])
        {
            await RunAsync(project, "dotnet", "add", "package", package);
        }

        if (app.Woven is { } woven)
        {
            await RunAsync(project, "dotnet", "add", "package", "KernelTls.Weave");
            await RunAsync(project, "dotnet", "add", "package", woven);
            string file = Path.Combine(project, $"{app.Name}.csproj");
            File.WriteAllText(file, File.ReadAllText(file).Replace(
                "</Project>", $"<ItemGroup><KernelTlsWeave Include=\"{woven}\" /></ItemGroup></Project>", StringComparison.Ordinal));
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
    /// Creates the local feed, in addition to the machine's sources. Packages are unpacked in a separate folder, where
    /// downloaded ones are kept. Our own have the same version in each run and are removed.
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
