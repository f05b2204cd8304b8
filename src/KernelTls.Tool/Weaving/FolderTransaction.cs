using KernelTls.Weave;

namespace KernelTls.Tool.Weaving;

/// <summary>
/// Changes the files of a folder so that an interruption at any point leaves a folder that works, and that the next run completes or takes
/// back.
/// </summary>
/// <remarks>
/// New contents are written beside the folder's files and then renamed, one file at a time, in the order of the journal: the library, the
/// deps.json, the assemblies. Files are restored in the reverse order. A woven assembly is thus never without the library.
/// </remarks>
internal sealed class FolderTransaction : IDisposable
{
    private readonly string _folder;
    private readonly string _staged;
    private readonly string _originals;
    private readonly FileStream _lock;
    private readonly Action<string>? _reached;

    /// <summary>Begins to change a folder, alone.</summary>
    /// <param name="folder">The folder.</param>
    /// <param name="reached">For tests: called before each step with its name.</param>
    /// <exception cref="FolderRefusedException">Another process changes it.</exception>
    public FolderTransaction(string folder, Action<string>? reached = null)
    {
        (_folder, _reached) = (folder, reached);
        string own = Path.Combine(folder, FolderJournal.Folder);
        _staged = Path.Combine(own, "new");
        _originals = Path.Combine(own, "originals");
        Directory.CreateDirectory(own);
        try
        {
            _lock = new FileStream(Path.Combine(own, "lock"), FileMode.OpenOrCreate, FileAccess.ReadWrite, FileShare.None);
        }
        catch (IOException e)
        {
            throw new FolderRefusedException($"another ktls is changing {folder}: {e.Message.TrimEnd('.')}.");
        }
    }

    /// <summary>Changes files.</summary>
    /// <param name="changes">The files, in the order in which they are changed.</param>
    /// <param name="like">The file whose owner and permissions new files get.</param>
    /// <param name="before">The journal that the changes were derived from.</param>
    public void Apply(IReadOnlyList<FileChange> changes, string like, FolderJournal? before)
    {
        if (FolderJournal.Read(_folder)?.Files.Count != before?.Files.Count)
        {
            throw new FolderRefusedException($"another ktls has changed {_folder} meanwhile. Try again.");
        }

        List<JournalEntry> files;
        try
        {
            files = Stage(changes, like, before);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            DeleteFolder(before is null ? Path.Combine(_folder, FolderJournal.Folder) : _staged);
            throw;
        }

        Reached("journal");
        FolderJournal journal = new(FolderJournal.CurrentVersion, FolderState.Weaving, files);
        journal.Write(_folder);
        Complete(journal);
    }

    /// <summary>Completes changes that were interrupted.</summary>
    public void Complete(FolderJournal journal)
    {
        List<JournalEntry> done = [];
        foreach (JournalEntry entry in journal.Files)
        {
            string staged = Path.Combine(_staged, entry.Path), path = Path.Combine(_folder, entry.Path);
            if (File.Exists(staged) && HashIn(_folder, entry.Path) == entry.Replaces)
            {
                Reached($"replace {entry.Path}");
                Directory.CreateDirectory(Path.GetDirectoryName(path)!);
                File.Move(staged, path, overwrite: true);
            }

            // A file that was deployed since is not ours.
            if (IsAsWritten(entry))
            {
                done.Add(entry);
            }
        }

        Reached("journal of the woven folder");
        (journal with { State = FolderState.Woven, Files = done }).Write(_folder);
        Reached("remove what was staged");
        DeleteFolder(_staged);
    }

    /// <summary>Restores the originals, removes what was added, and forgets the folder.</summary>
    /// <returns>The paths of restored files and of removed ones.</returns>
    public (IReadOnlyList<string> Restored, IReadOnlyList<string> Removed) Restore(FolderJournal journal)
    {
        ThrowIfLibraryIsNeeded(journal);
        (journal with { State = FolderState.Restoring }).Write(_folder);
        List<string> restored = [], removed = [];
        foreach (JournalEntry entry in journal.Files.Reverse().Where(IsAsWritten))
        {
            string original = Path.Combine(_originals, entry.Path), path = Path.Combine(_folder, entry.Path);
            Reached($"restore {entry.Path}");
            if (entry.IsAdded)
            {
                File.Delete(path);
                removed.Add(entry.Path);
            }
            else
            {
                File.Move(original, path, overwrite: true);
                restored.Add(entry.Path);
            }
        }

        // Of all added files, because an earlier run may have ended after it removed them.
        foreach (JournalEntry entry in journal.Files.Where(f => f.IsAdded))
        {
            Reached($"remove the folder of {entry.Path}");
            RemoveEmpty(Path.GetDirectoryName(Path.Combine(_folder, entry.Path))!);
        }

        Forget();
        return (restored, removed);
    }

    /// <summary>Removes everything that the tool keeps in the folder.</summary>
    public void Forget()
    {
        Reached("remove originals");
        DeleteFolder(_staged);
        DeleteFolder(_originals);
        Reached("remove the journal");
        FolderJournal.Delete(_folder);
        Reached("remove the folder");
        DeleteFolder(Path.Combine(_folder, FolderJournal.Folder));
    }

    public void Dispose() => _lock.Dispose();

    /// <summary>Throws if a file was changed since it was woven, and still needs what restoring would remove.</summary>
    private void ThrowIfLibraryIsNeeded(FolderJournal journal)
    {
        if (journal.State == FolderState.Restoring || !journal.Files.Any(e => e.IsAdded && e.Path == $"{Replacements.Library}.dll"))
        {
            return;
        }

        foreach (JournalEntry entry in journal.Files.Where(e => !e.IsAdded && !IsAsWritten(e)))
        {
            string path = Path.Combine(_folder, entry.Path);
            if (File.Exists(path)
                && (entry.Path.EndsWith(".json", StringComparison.Ordinal) ? DependencyFile.Read(path).Has(Replacements.Library) : AssemblyWeaver.IsWoven(path)))
            {
                throw new FolderRefusedException($"{path} was changed after it was woven, and needs the library that would be removed. Deploy that file anew.");
            }
        }
    }

    /// <summary>Writes the new contents and keeps the originals. Returns the entries of the journal.</summary>
    private List<JournalEntry> Stage(IReadOnlyList<FileChange> changes, string like, FolderJournal? before)
    {
        DeleteFolder(_staged);
        Dictionary<string, JournalEntry> earlier = (before?.Files ?? []).Where(IsAsWritten).ToDictionary(e => e.Path, StringComparer.Ordinal);
        List<JournalEntry> entries = [];
        foreach (FileChange change in changes)
        {
            Reached($"stage {change.Path}");
            string path = Path.Combine(_folder, change.Path), staged = Path.Combine(_staged, change.Path);
            bool exists = File.Exists(path);
            Directory.CreateDirectory(Path.GetDirectoryName(staged)!);
            FolderJournal.WriteThrough(staged, change.Content);
            PosixFile.Resemble(staged, exists ? path : Path.Combine(_folder, like));
            bool wasChanged = earlier.Remove(change.Path, out JournalEntry? entry);
            if (exists && !wasChanged)
            {
                KeepOriginal(change.Path);
            }

            entries.Add(new JournalEntry(
                change.Path, wasChanged ? entry!.IsAdded : !exists, FolderJournal.HashOf(change.Content), HashIn(_folder, change.Path)));
        }

        return [.. earlier.Values, .. entries];
    }

    private void KeepOriginal(string file)
    {
        string original = Path.Combine(_originals, file);
        Directory.CreateDirectory(Path.GetDirectoryName(original)!);
        File.Delete(original);
        PosixFile.Keep(Path.Combine(_folder, file), original);
    }

    private bool IsAsWritten(JournalEntry entry) => HashIn(_folder, entry.Path) == entry.Hash;

    private static string? HashIn(string folder, string file) =>
        Path.Combine(folder, file) is var path && File.Exists(path) ? FolderJournal.HashOf(File.ReadAllBytes(path)) : null;

    private void RemoveEmpty(string folder)
    {
        for (; folder.Length > _folder.Length; folder = Path.GetDirectoryName(folder)!)
        {
            if (!Directory.Exists(folder))
            {
                continue;
            }

            if (Directory.EnumerateFileSystemEntries(folder).Any())
            {
                return;
            }

            Directory.Delete(folder);
        }
    }

    private static void DeleteFolder(string folder)
    {
        if (Directory.Exists(folder))
        {
            Directory.Delete(folder, recursive: true);
        }
    }

    private void Reached(string step) => _reached?.Invoke(step);
}
