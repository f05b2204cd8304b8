using System.Text.Json;
using System.Text.RegularExpressions;
using YamlDotNet.Serialization;

namespace KernelTls.PackageTests;

/// <summary>Represents a file that the repository's host or an editor reads, and the names in it.</summary>
internal sealed partial class HostedFile(string path)
{
    private static readonly JsonDocumentOptions s_withComments = new() { CommentHandling = JsonCommentHandling.Skip };

    /// <summary>Gets the files, as paths from the repository's root.</summary>
    public static string[] All { get; } =
    [
        ".gitattributes",
        .. new[] { ".github", ".devcontainer" }
            .SelectMany(folder => Directory.GetFiles(Path.Combine(Repository.Root, folder), "*", SearchOption.AllDirectories))
            .Select(file => Path.GetRelativePath(Repository.Root, file))
            .Order(StringComparer.Ordinal),
    ];

    public static string[] Workflows { get; } = [.. All.Where(file => file.StartsWith(".github/workflows/", StringComparison.Ordinal))];

    public static string[] Forms { get; } =
        [.. All.Where(file => file.Contains("_TEMPLATE/", StringComparison.Ordinal) && !file.EndsWith("config.yml", StringComparison.Ordinal))];

    public string Text { get; } = File.ReadAllText(Path.Combine(Repository.Root, path));

    /// <summary>
    /// Parses the file according to its extension. Throws if it cannot be parsed or has a duplicate key.
    /// </summary>
    public void Parse()
    {
        switch (Path.GetExtension(path))
        {
            case ".yml":
                _ = Yaml();
                break;
            case ".json":
                using (JsonDocument document = JsonDocument.Parse(Text, s_withComments))
                {
                    Assert.Equal(JsonValueKind.Object, document.RootElement.ValueKind);
                }

                break;
        }
    }

    public Dictionary<object, object> Yaml() =>
        Map(new DeserializerBuilder().WithDuplicateKeyChecking().Build().Deserialize<object>(Text));

    public static Dictionary<object, object> Map(object node) => Assert.IsType<Dictionary<object, object>>(node);

    public static List<object> List(object node) => Assert.IsType<List<object>>(node);

    /// <summary>
    /// Returns the repository's files and folders that the text names, except those that commands create in artifacts.
    /// </summary>
    public IEnumerable<string> Paths() => RepositoryPath().Matches(Text).Select(match => match.Value.TrimEnd('/', '.'));

    /// <summary>Returns the commands of eng/ and of the tool that the text calls, each with its options.</summary>
    public IEnumerable<(string Command, string[] Options)> Commands() =>
        from Match match in CommandLine().Matches(Text)
        let words = match.Groups["rest"].Value.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries)
        select (match.Groups["command"].Value, words.Select(word => word.TrimEnd('.', ',', ':')).Where(word => word.StartsWith('-')).ToArray());

    [GeneratedRegex(@"(?<![\w/.@-])((docs|src|eng|tests|benchmarks|samples|native|\.github)/[\w./-]*|[A-Z]+\.md|[A-Z]\w+\.slnx|global\.json)")]
    private static partial Regex RepositoryPath();

    // Up to the end of a command in a shell or in prose.
    [GeneratedRegex(@"(?<![\w/.-])(?<command>eng/[\w-]+|ktls [a-z]+)(?<rest>( [^\s`;|&<>""]+)*)")]
    private static partial Regex CommandLine();
}
