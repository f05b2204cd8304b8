using System.Text.RegularExpressions;
using KernelTls.Tests;
using YamlDotNet.Serialization;

namespace KernelTls.PackageTests;

/// <summary>
/// Follows the recipes of docs/no-rebuild.md with an application that was published without our packages, in a mount namespace of its own,
/// as a user who is not root and has no capabilities, and with a bundle that cannot be written.
/// </summary>
[Trait("cell", "programs")]
[Trait("loop", "outer")]
public sealed partial class RecipeTests(Workshop workshop) : IDisposable
{
    // Cells see artifacts alone.
    private static readonly string s_document = File.ReadAllText(Path.Combine(AppContext.BaseDirectory, "no-rebuild.md"));

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task An_image()
    {
        string[] lines = Block("dockerfile").Split('\n', StringSplitOptions.RemoveEmptyEntries);
        Assert.Equal(2, lines.Length);
        Match add = Add().Match(lines[0]);
        Assert.True(add.Success, lines[0]);
        Assert.StartsWith("ENV ", lines[1], StringComparison.Ordinal);

        // What ADD does with an archive. A cell and .NET 11 have the bundle, and no SDK that makes packages.
        string unpacked = Directory.CreateDirectory(_directory["image"]).FullName;
        string[] pack = Cell.IsLab || Environment.Version.Major != 10
            ? ["tar", "--create", "--gzip", "--file", _directory[add.Groups["archive"].Value], "--directory", HookBundle.FullPath, "."]
            : ["cp", Path.Combine(await workshop.PackagesAsync(), add.Groups["archive"].Value), _directory.FullName];
        await SucceedAsync(pack);
        await SucceedAsync(["tar", "--extract", "--gzip", "--file", _directory[add.Groups["archive"].Value], "--directory", unpacked]);

        await AssertReachedAsync(unpacked, add.Groups["folder"].Value, [.. lines[1].Split(' ').Skip(1)]);
    }

    [Fact]
    public async Task A_pod()
    {
        Dictionary<object, object> spec = HostedFile.Map(new DeserializerBuilder().Build().Deserialize<Dictionary<object, object>>(Block("yaml"))["spec"]);
        Dictionary<object, object> init = HostedFile.Map(Assert.Single(HostedFile.List(spec["initContainers"])));
        Dictionary<object, object> application = HostedFile.Map(Assert.Single(HostedFile.List(spec["containers"])));
        string volume = (string)HostedFile.Map(Assert.Single(HostedFile.List(spec["volumes"])))["name"];
        (string Volume, string Path) initial = Mount(init);
        (string Volume, string Path) mounted = Mount(application);
        Assert.Equal((volume, volume), (initial.Volume, mounted.Volume));

        // The init container's image has the bundle where the command copies it from.
        string[] command = [.. HostedFile.List(init["command"]).Cast<string>()];
        string folder = Directory.CreateDirectory(_directory["volume"]).FullName;
        string image = Path.GetDirectoryName(command[^2])!;
        await SucceedAsync([.. command[..^2], Path.Combine(HookBundle.FullPath, "."), command[^1].Replace(initial.Path, folder, StringComparison.Ordinal)]);

        Assert.Equal(mounted.Path, image);
        await AssertReachedAsync(
            folder,
            mounted.Path,
            [.. HostedFile.List(application["env"]).Select(HostedFile.Map).Select(e => $"{e["name"]}={e["value"]}")]);
    }

    [Fact]
    public async Task A_service()
    {
        string[] lines = Block("ini").Split('\n', StringSplitOptions.RemoveEmptyEntries);
        Assert.Equal("[Service]", lines[0]);
        Assert.All(lines[1..], l => Assert.StartsWith("Environment=", l, StringComparison.Ordinal));
        string bundle = Regex.Match(s_document, @"^ktls bundle (/\S+)$", RegexOptions.Multiline).Groups[1].Value;
        string written = _directory["written"];
        string said = await SucceedAsync(["dotnet", HookBundle.Tool, "bundle", written]);

        Assert.Equal(
            lines[1..].Select(l => l["Environment=".Length..]),
            said.Replace(written, bundle, StringComparison.Ordinal).Split('\n', StringSplitOptions.RemoveEmptyEntries));
        await AssertReachedAsync(written, bundle, [.. lines[1..].Select(l => l["Environment=".Length..])]);
    }

    private static string Block(string language) =>
        Regex.Match(s_document, $"```{language}\n(.*?)```", RegexOptions.Singleline).Groups[1].Value;

    private static (string Volume, string Path) Mount(Dictionary<object, object> container)
    {
        Dictionary<object, object> mount = HostedFile.Map(Assert.Single(HostedFile.List(container["volumeMounts"])));
        return ((string)mount["name"], (string)mount["mountPath"]);
    }

    /// <summary>Starts the application with the variables, where the folder is mounted at the path, and asks it.</summary>
    private async Task AssertReachedAsync(string folder, string path, string[] variables)
    {
        string published = await workshop.PublishAsync(ConsumerApp.Unchanged("web"), "unchanged-web");
        Assert.StartsWith("/opt/", path, StringComparison.Ordinal);
        string[] command =
        [
            "unshare", "--mount", "sh", "-c",
            $"mkdir -p /opt && mount -t tmpfs none /opt && mkdir -p {path} && mount --bind {folder} {path} && mount -o remount,bind,ro {path} && exec \"$@\"", "sh",
            "unshare", "--user", "--map-user", "1000", "--map-group", "1000", "env", .. variables, "dotnet", Path.Combine(published, "unchanged-web.dll"),
        ];
        using WebServer server = await WebServer.RunAsync(published, command, (Application.DirectVariable, "1"));

        Assert.Equal("Hello World!", await server.GetAsync("/", "2.0"));

        Assert.True(server.Process.HasLoaded($"{path[1..]}/runtimes/linux-x64/native/{Repository.Shim}"));
        Assert.Contains(
            KtlsPlatform.Probe().IsSupported ? " uses kernel TLS." : " uses OpenSSL on the socket, without kernel TLS: ", await server.Process.KillAsync(), StringComparison.Ordinal);
    }

    private async Task<string> SucceedAsync(string[] command)
    {
        using Application application = Programs.Run(_directory.FullName, command);
        return await application.SucceedAsync();
    }

    [GeneratedRegex(@"^ADD (?<archive>\S+) (?<folder>/\S+)$")]
    private static partial Regex Add();
}
