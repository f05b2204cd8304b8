using System.Text;
using System.Text.Json;

namespace KernelTls.Tool.Weaving;

/// <summary>
/// A deps.json, which lists the files that the host gives to the runtime. It is changed as text: what was there stays as it is, with its
/// order, spaces and line ends.
/// </summary>
internal sealed class DependencyFile
{
    private const string Targets = "targets", Libraries = "libraries", RuntimePack = "runtimepack";
    private static readonly JsonReaderOptions s_options = new() { CommentHandling = JsonCommentHandling.Skip, AllowTrailingCommas = true };

    private readonly byte[] _text;
    private readonly string _target;
    private readonly JsonElement _packages;
    private readonly JsonElement _libraries;

    private DependencyFile(byte[] text, string target, JsonElement packages, JsonElement libraries) =>
        (_text, _target, _packages, _libraries) = (text, target, packages, libraries);

    /// <summary>Gets the platform of the application, or null if it is portable.</summary>
    public string? Platform => _target.IndexOf('/', StringComparison.Ordinal) is var slash and > 0 ? _target[(slash + 1)..] : null;

    /// <summary>Gets the assemblies, without those of resources and for Windows.</summary>
    public IEnumerable<DependencyAsset> Assemblies =>
        from package in _packages.EnumerateObject()
        let isFramework = TypeOf(package.Name) == RuntimePack
        from path in PathsOf(package.Value)
        where path.EndsWith(".dll", StringComparison.OrdinalIgnoreCase)
        select new DependencyAsset(path, isFramework);

    /// <summary>Reads the file.</summary>
    /// <exception cref="FolderRefusedException">It has another form.</exception>
    public static DependencyFile Read(string path)
    {
        byte[] text = File.ReadAllBytes(path);
        try
        {
            JsonDocumentOptions options = new() { CommentHandling = JsonCommentHandling.Skip, AllowTrailingCommas = true };
            JsonElement root = JsonDocument.Parse(text.AsMemory(MarkLength(text)), options).RootElement;
            string target = root.GetProperty("runtimeTarget").GetProperty("name").GetString()!;
            return new DependencyFile(text, target, root.GetProperty(Targets).GetProperty(target), root.GetProperty(Libraries));
        }
        catch (Exception e) when (e is JsonException or KeyNotFoundException or InvalidOperationException)
        {
            throw new FolderRefusedException($"{path} is not the deps.json of an application: {e.Message.TrimEnd('.')}.");
        }
    }

    /// <summary>Returns whether the application has a library of this name.</summary>
    public bool Has(string library) =>
        _packages.EnumerateObject().Any(p => p.Name.StartsWith($"{library}/", StringComparison.OrdinalIgnoreCase));

    /// <summary>Returns the text with more libraries.</summary>
    /// <param name="added">The libraries, each with what the host must know.</param>
    public byte[] With(IReadOnlyList<DependencyEntry> added)
    {
        string end = _text.AsSpan().IndexOf("\r\n"u8) >= 0 ? "\r\n" : "\n";
        (int position, bool isEmpty) target = EndOf(Targets, _target), libraries = EndOf(Libraries, null);
        List<(int Position, string Text)> insertions =
        [
            (target.position, Members(added.Select(e => e.Target), target.isEmpty, "    ")),
            (libraries.position, Members(added.Select(e => e.Library), libraries.isEmpty, "  ")),
        ];
        List<byte> result = [.. _text];
        foreach ((int position, string text) in insertions.OrderByDescending(i => i.Position))
        {
            result.InsertRange(position, Encoding.UTF8.GetBytes(text));
        }

        return [.. result];

        string Members(IEnumerable<string> members, bool isFirst, string indentation) =>
            string.Concat(members.Select((m, i) => (isFirst && i == 0 ? "" : ",") + end + m.ReplaceLineEndings(end)))
            + (isFirst ? end + indentation : "");
    }

    private string? TypeOf(string library) =>
        _libraries.TryGetProperty(library, out JsonElement value) && value.TryGetProperty("type", out JsonElement type) ? type.GetString() : null;

    private static IEnumerable<string> PathsOf(JsonElement package)
    {
        foreach (JsonProperty asset in Members(package, "runtime"))
        {
            yield return asset.Name;
        }

        foreach (JsonProperty asset in Members(package, "runtimeTargets"))
        {
            if (asset.Value.TryGetProperty("assetType", out JsonElement type) && type.ValueEquals("runtime")
                && !(asset.Value.TryGetProperty("rid", out JsonElement rid) && rid.GetString()!.StartsWith("win", StringComparison.Ordinal)))
            {
                yield return asset.Name;
            }
        }
    }

    private static JsonElement.ObjectEnumerator Members(JsonElement package, string name) =>
        package.TryGetProperty(name, out JsonElement members) ? members.EnumerateObject() : default;

    /// <summary>Returns the position behind the last member of an object, and whether it has none.</summary>
    private (int Position, bool IsEmpty) EndOf(string name, string? member)
    {
        int start = MarkLength(_text);
        Utf8JsonReader reader = new(_text.AsSpan(start), s_options);
        int depth = member is null ? 1 : 2;
        string? outer = null, current = null;
        bool isFirst = false, isInside = false;
        long end = 0;
        while (reader.Read())
        {
            if (isInside && reader.TokenType == JsonTokenType.EndObject && reader.CurrentDepth == depth)
            {
                return (start + (int)end, isFirst);
            }

            isFirst = false;
            if (reader.TokenType == JsonTokenType.PropertyName && reader.CurrentDepth <= 2)
            {
                current = reader.GetString();
                outer = reader.CurrentDepth == 1 ? current : outer;
            }
            else if (!isInside && reader.TokenType == JsonTokenType.StartObject && reader.CurrentDepth == depth
                && outer == name && (member is null || current == member))
            {
                isInside = isFirst = true;
            }

            end = reader.BytesConsumed;
        }

        throw new JsonException($"{name} has no end.");
    }

    private static int MarkLength(byte[] text) => text.AsSpan().StartsWith((ReadOnlySpan<byte>)[0xEF, 0xBB, 0xBF]) ? 3 : 0;
}
