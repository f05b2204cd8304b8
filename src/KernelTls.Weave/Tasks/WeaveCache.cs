using System.Text.Json;

namespace KernelTls.Weave;

/// <summary>The results of earlier builds, in a file under obj/, so that nothing is woven twice. Without the file everything is woven.</summary>
internal sealed class WeaveCache
{
    private readonly string _path;
    private readonly string _weaver;
    private readonly Dictionary<string, WovenFile> _before = [];
    private readonly Dictionary<string, WovenFile> _now = [];

    private WeaveCache(string path, string weaver) => (_path, _weaver) = (path, weaver);

    /// <summary>Reads the file, if it is there and of the same weaver and library.</summary>
    /// <param name="path">The file.</param>
    /// <param name="library">KernelTls.dll.</param>
    public static WeaveCache Read(string path, string library)
    {
        string weaver = $"{typeof(WeaveCache).Module.ModuleVersionId} {FileStamp.Of(library)}";
        WeaveCache cache = new(path, weaver);
        try
        {
            if (File.Exists(path) && JsonSerializer.Deserialize<Contents>(File.ReadAllBytes(path)) is { } contents && contents.Weaver == weaver)
            {
                foreach (WovenFile file in contents.Files)
                {
                    cache._before[file.Input] = file;
                }
            }
        }
        catch (JsonException)
        {
            // A damaged file is ignored.
        }

        return cache;
    }

    /// <summary>Returns the result for an assembly, if neither it nor its woven copy has changed since.</summary>
    public WovenFile? Find(string input, string output)
    {
        if (!_before.TryGetValue(input, out WovenFile? file) || file.InputStamp != FileStamp.Of(input)
            || (file.OutputStamp is { } stamp && (file.Output != output || stamp != FileStamp.Of(output))))
        {
            return null;
        }

        return _now[input] = file;
    }

    /// <summary>Stores the result for an assembly.</summary>
    public void Add(WovenFile file) => _now[file.Input] = file;

    /// <summary>Writes the file, unless it has the same contents already.</summary>
    public void Save()
    {
        byte[] contents = JsonSerializer.SerializeToUtf8Bytes(
            new Contents(_weaver, [.. _now.Values.OrderBy(f => f.Input, StringComparer.Ordinal)]));
        if (!File.Exists(_path) || !File.ReadAllBytes(_path).AsSpan().SequenceEqual(contents))
        {
            File.WriteAllBytes(_path, contents);
        }
    }

    private sealed record Contents(string Weaver, WovenFile[] Files);
}
