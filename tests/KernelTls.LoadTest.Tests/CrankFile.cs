using System.Text.RegularExpressions;
using YamlDotNet.Serialization;

namespace KernelTls.LoadTest.Tests;

/// <summary>
/// Reads a crank file, as far as KernelTls's uses the format: jobs that a scenario and then profiles change, and
/// templates with variables. Anything that crank would ignore silently is an error here.
/// </summary>
internal sealed partial class CrankFile
{
    private readonly Dictionary<string, object> _root;

    public CrankFile(string path)
    {
        FullName = path;
        using StreamReader reader = new(path);
        _root = Map(new DeserializerBuilder().WithAttemptingUnquotedStringTypeDeserialization().Build().Deserialize<object>(reader));
    }

    public static IReadOnlyList<CrankFile> All { get; } =
        [.. Directory.GetFiles(Path.Combine(AppContext.BaseDirectory, "repository", "benchmarks", "crank"), "*.yml").Select(f => new CrankFile(f))];

    /// <summary>Gets the only file.</summary>
    public static CrankFile LoadTest => All.Single();

    public string FullName { get; }

    public IEnumerable<string> Sections => _root.Keys;

    public Dictionary<string, object> Variables => Map(_root["variables"]);

    public Dictionary<string, object> Jobs => Map(_root["jobs"]);

    public Dictionary<string, object> Scenarios => Map(_root["scenarios"]);

    public Dictionary<string, object> Profiles => Map(_root["profiles"]);

    public static Dictionary<string, object> Map(object? node) =>
        Assert.IsType<Dictionary<object, object>>(node).ToDictionary(pair => (string)pair.Key, pair => pair.Value);

    public static Dictionary<string, object> MapOf(Dictionary<string, object> node, string key) =>
        node.TryGetValue(key, out object? value) ? Map(value) : [];

    /// <summary>
    /// Returns a scenario's job with its templates filled in: what the agent of that service would run.
    /// </summary>
    public CrankJob Render(string scenario, string service, string profile, params (string Name, object Value)[] overridden)
    {
        Dictionary<string, object> reference = Map(Map(Scenarios[scenario])[service]);
        Dictionary<string, object> job = Map(Jobs[(string)reference["job"]]);
        Dictionary<string, object> agent = Map(MapOf(Map(Profiles[profile]), "agents")[service]);
        Dictionary<string, object> variables = new(Variables);
        foreach (Dictionary<string, object> layer in new[] { MapOf(job, "variables"), MapOf(reference, "variables") })
        {
            foreach ((string name, object value) in layer)
            {
                variables[name] = value;
            }
        }

        foreach ((string name, object value) in overridden)
        {
            Assert.True(variables.ContainsKey(name), $"{scenario}/{service} has no variable {name}");
            variables[name] = value;
        }

        string arguments = Fill((string)job["arguments"], variables);
        Dictionary<string, string> environment = MapOf(agent, "environmentVariables").ToDictionary(p => p.Key, p => $"{p.Value}");
        return new CrankJob(arguments.Split(' ', StringSplitOptions.RemoveEmptyEntries), environment, variables);
    }

    /// <summary>Returns the variables in a template.</summary>
    public static IEnumerable<string> NamesIn(string template) =>
        Hole().Matches(template).SelectMany(m => new[] { m.Groups["name"].Value, m.Groups["key"].Value }).Where(n => n.Length > 0);

    private static string Fill(string template, Dictionary<string, object> variables)
    {
        string filled = Hole().Replace(template, match =>
        {
            object value = variables[match.Groups["name"].Value];
            return match.Groups["key"].Success ? Text(Map(value)[(string)variables[match.Groups["key"].Value]]) : Text(value);
        });
        Assert.DoesNotContain("{", filled, StringComparison.Ordinal);
        return filled;
    }

    /// <summary>Formats a value as Liquid does.</summary>
    private static string Text(object value) =>
        value is bool truth ? (truth ? "true" : "false") : FormattableString.Invariant($"{value}");

    [GeneratedRegex(@"\{\{ *(?<name>\w+)(\[(?<key>\w+)\])? *\}\}")]
    private static partial Regex Hole();
}

/// <summary>Represents a job.</summary>
/// <param name="Arguments">The command line.</param>
/// <param name="Environment">The environment, which contains the profile's variables.</param>
/// <param name="Variables">The values of the templates' variables.</param>
internal sealed record CrankJob(
    string[] Arguments, IReadOnlyDictionary<string, string> Environment, IReadOnlyDictionary<string, object> Variables);
