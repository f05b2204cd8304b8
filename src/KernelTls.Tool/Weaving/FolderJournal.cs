using System.Security.Cryptography;
using System.Text.Json;
using System.Text.Json.Serialization;

namespace KernelTls.Tool.Weaving;

/// <summary>What was done to a folder, and what is being done: a file in the folder itself, beside the originals.</summary>
/// <param name="Version">The version of the tool.</param>
/// <param name="State">What is being done.</param>
/// <param name="Files">The changed files, in the order in which they are changed.</param>
internal sealed record FolderJournal(Version Version, FolderState State, IReadOnlyList<JournalEntry> Files)
{
    /// <summary>The subfolder for everything that the tool keeps.</summary>
    public const string Folder = ".kerneltls";

    private static readonly JsonSerializerOptions s_options = new(JsonSerializerDefaults.Web)
    {
        WriteIndented = true,
        Converters = { new JsonStringEnumConverter() },
    };

    /// <summary>Reads the journal of a folder, or returns null if it was never woven.</summary>
    /// <exception cref="FolderRefusedException">It is of a newer version.</exception>
    public static FolderJournal? Read(string folder)
    {
        string path = PathIn(folder);
        if (!File.Exists(path))
        {
            return null;
        }

        try
        {
            FolderJournal journal = JsonSerializer.Deserialize<FolderJournal>(File.ReadAllBytes(path), s_options)!;
            return journal.Version <= CurrentVersion
                ? journal
                : throw new FolderRefusedException($"{folder} was woven by ktls {journal.Version.ToString(3)}, and this one is {CurrentVersion.ToString(3)}. Use that version.");
        }
        catch (Exception e) when (e is JsonException or NotSupportedException)
        {
            throw new FolderRefusedException($"{path} cannot be read: {e.Message.TrimEnd('.')}. It is of another version of ktls, or damaged.");
        }
    }

    /// <summary>Gets the version of this tool.</summary>
    public static Version CurrentVersion { get; } = typeof(FolderJournal).Assembly.GetName().Version!;

    /// <summary>Writes the journal: at each moment the old or the new one is there.</summary>
    public void Write(string folder)
    {
        string path = PathIn(folder);
        WriteThrough(path + ".new", JsonSerializer.SerializeToUtf8Bytes(this, s_options));
        File.Move(path + ".new", path, overwrite: true);
    }

    /// <summary>Removes the journal.</summary>
    public static void Delete(string folder) => File.Delete(PathIn(folder));

    /// <summary>Returns the journal's text for contents.</summary>
    public static string HashOf(ReadOnlySpan<byte> content) => Convert.ToHexString(SHA256.HashData(content));

    /// <summary>Writes a file as far as the disk.</summary>
    public static void WriteThrough(string path, byte[] content)
    {
        using FileStream file = File.Create(path);
        file.Write(content);
        file.Flush(flushToDisk: true);
    }

    private static string PathIn(string folder) => Path.Combine(folder, Folder, "journal.json");
}
