using System.Globalization;
using System.Text.Json;

namespace KernelTls.Tool.Running;

/// <summary>Finds out, from its files, whether .NET will run a start-up hook in a program.</summary>
/// <remarks>What it does not know, such as a script, may start .NET in any way: nothing is said about it.</remarks>
internal static class TargetProgram
{
    private const string HookSwitch = "System.StartupHookProvider.IsSupported";
    private const int FirstVersion = 10;

    /// <summary>Returns why a command is not reached by a start-up hook, or null if it is, or if that is not known.</summary>
    /// <param name="program">The path of the program.</param>
    /// <param name="arguments">Its arguments.</param>
    public static string? FindObstacle(string program, IReadOnlyList<string> arguments)
    {
        try
        {
            program = File.ResolveLinkTarget(program, returnFinalTarget: true)?.FullName ?? program;
            if (Path.GetFileName(program) == "dotnet")
            {
                return arguments.FirstOrDefault(a => a.EndsWith(".dll", StringComparison.Ordinal) && File.Exists(a)) is { } assembly
                    ? FindObstacleBeside(assembly)
                    : null;
            }

            NativeProgram image = NativeProgram.Read(program);
            return image switch
            {
                { IsAheadOfTime: true } => $"{program} is compiled ahead of time (NativeAOT), and has no start-up hooks. Reference the packages and publish it again.",
                { Configuration: { } configuration } => FindObstacle(configuration, $"the runtimeconfig.json in {program}"),
                { IsHost: true } => FindObstacleBeside(program + ".dll"),
                _ => null,
            };
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or JsonException or InvalidOperationException)
        {
            return null;
        }
    }

    private static string? FindObstacleBeside(string assembly)
    {
        string configuration = Path.ChangeExtension(assembly, ".runtimeconfig.json");
        return File.Exists(configuration) ? FindObstacle(File.ReadAllBytes(configuration), configuration) : null;
    }

    private static string? FindObstacle(byte[] configuration, string name)
    {
        using JsonDocument document = JsonDocument.Parse(configuration, new JsonDocumentOptions { CommentHandling = JsonCommentHandling.Skip, AllowTrailingCommas = true });
        if (!document.RootElement.TryGetProperty("runtimeOptions", out JsonElement options))
        {
            return null;
        }

        if (options.TryGetProperty("configProperties", out JsonElement properties)
            && properties.TryGetProperty(HookSwitch, out JsonElement supported)
            && (supported.ValueKind == JsonValueKind.False || (supported.ValueKind == JsonValueKind.String && supported.GetString() == "false")))
        {
            return $"{name} has {HookSwitch}: false, as trimmed applications have. Reference the packages, or publish it with the property StartupHookSupport=true.";
        }

        return VersionOf(options) is { } version && version < FirstVersion && !RollsForward(options)
            ? $"{name} is for .NET {version}, and kernel TLS needs .NET {FirstVersion}."
            : null;
    }

    /// <summary>Returns the major version of .NET that the program is for, or null.</summary>
    private static int? VersionOf(JsonElement options)
    {
        IEnumerable<JsonElement> frameworks =
            options.TryGetProperty("framework", out JsonElement one) ? [one]
            : options.TryGetProperty("frameworks", out JsonElement several) || options.TryGetProperty("includedFrameworks", out several) ? several.EnumerateArray()
            : [];
        foreach (JsonElement framework in frameworks)
        {
            if (framework.TryGetProperty("version", out JsonElement version)
                && int.TryParse(version.GetString()?.Split('.')[0], NumberStyles.None, CultureInfo.InvariantCulture, out int major))
            {
                return major;
            }
        }

        return null;
    }

    private static bool RollsForward(JsonElement options)
    {
        string? policy = Environment.GetEnvironmentVariable("DOTNET_ROLL_FORWARD");
        if (string.IsNullOrEmpty(policy))
        {
            policy = options.TryGetProperty("rollForward", out JsonElement own) ? own.GetString() : null;
        }

        return policy?.Contains("Major", StringComparison.OrdinalIgnoreCase) == true;
    }
}
