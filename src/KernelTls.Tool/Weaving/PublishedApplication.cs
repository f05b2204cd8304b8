using System.Text.Json;

namespace KernelTls.Tool.Weaving;

/// <summary>An application in a published folder.</summary>
/// <param name="Name">The name of its entry assembly.</param>
/// <param name="IsSelfContained">Whether .NET is in the folder.</param>
/// <param name="IsWeb">Whether it uses ASP.NET Core.</param>
/// <param name="Dependencies">Its deps.json, or null if there is none.</param>
internal sealed record PublishedApplication(string Name, bool IsSelfContained, bool IsWeb, DependencyFile? Dependencies)
{
    private const int FirstRuntime = 10;

    /// <summary>Gets the name of the file that configures the runtime.</summary>
    public const string ConfigurationSuffix = ".runtimeconfig.json";

    /// <summary>Gets the name of the entry assembly's file.</summary>
    public string EntryFile => $"{Name}.dll";

    /// <summary>Gets the name of the file with its dependencies.</summary>
    public string DependencyPath => $"{Name}.deps.json";

    /// <summary>Reads an application.</summary>
    /// <param name="configuration">The path of its runtimeconfig.json.</param>
    /// <exception cref="FolderRefusedException">It cannot be woven.</exception>
    public static PublishedApplication Read(string configuration)
    {
        string name = Path.GetFileName(configuration)[..^ConfigurationSuffix.Length];
        string folder = Path.GetDirectoryName(configuration)!;
        if (!File.Exists(Path.Combine(folder, $"{name}.dll")))
        {
            throw new FolderRefusedException($"{configuration} has no {name}.dll beside it.");
        }

        try
        {
            JsonDocumentOptions options = new() { CommentHandling = JsonCommentHandling.Skip, AllowTrailingCommas = true };
            using JsonDocument document = JsonDocument.Parse(File.ReadAllBytes(configuration), options);
            JsonElement runtime = document.RootElement.GetProperty("runtimeOptions");
            bool isSelfContained = runtime.TryGetProperty("includedFrameworks", out JsonElement frameworks);
            List<JsonElement> named = isSelfContained || runtime.TryGetProperty("frameworks", out frameworks)
                ? [.. frameworks.EnumerateArray()]
                : [runtime.GetProperty("framework")];
            foreach (JsonElement framework in named)
            {
                string version = framework.GetProperty("version").GetString()!;
                if (int.Parse(version.Split('.')[0], System.Globalization.CultureInfo.InvariantCulture) < FirstRuntime)
                {
                    throw new FolderRefusedException($"{name} is an application of .NET {version}, and KernelTls needs .NET {FirstRuntime}.");
                }
            }

            string dependencies = Path.Combine(folder, $"{name}.deps.json");
            return new PublishedApplication(
                name,
                isSelfContained,
                named.Any(f => f.GetProperty("name").GetString() == "Microsoft.AspNetCore.App"),
                File.Exists(dependencies) ? DependencyFile.Read(dependencies) : null);
        }
        catch (Exception e) when (e is JsonException or KeyNotFoundException or InvalidOperationException or FormatException)
        {
            throw new FolderRefusedException($"{configuration} is not the runtimeconfig.json of an application: {e.Message.TrimEnd('.')}.");
        }
    }
}
