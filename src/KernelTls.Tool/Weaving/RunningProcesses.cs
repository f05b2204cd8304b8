using System.Globalization;

namespace KernelTls.Tool.Weaving;

/// <summary>Finds processes that run from a folder, as far as this user may examine them.</summary>
/// <remarks>
/// A process loads assemblies when it needs them. One that started before the folder was woven knows nothing of the library and would fail
/// at a woven assembly that it loads later.
/// </remarks>
internal static class RunningProcesses
{
    /// <summary>Returns the process that has mapped a file of the folder, with that file, or null.</summary>
    public static (int Process, string File)? FindIn(string folder)
    {
        // By inode too: a process in another container has other paths.
        Dictionary<PosixFile.Identity, string> files = [];
        foreach (string file in Directory.EnumerateFiles(folder, "*", SearchOption.AllDirectories).Where(IsMappable))
        {
            files[PosixFile.IdentityOf(file)] = file;
        }

        foreach (string process in Directory.EnumerateDirectories("/proc"))
        {
            if (int.TryParse(Path.GetFileName(process), NumberStyles.None, CultureInfo.InvariantCulture, out int id) && id != Environment.ProcessId
                && MappedIn(id, folder + '/', files) is { } found)
            {
                return (id, found);
            }
        }

        return null;
    }

    private static bool IsMappable(string file) => Path.GetExtension(file) is "" or ".dll" or ".so";

    private static string? MappedIn(int process, string folder, Dictionary<PosixFile.Identity, string> files)
    {
        try
        {
            foreach (string line in File.ReadLines($"/proc/{process}/maps"))
            {
                // address permissions offset device inode path
                string[] fields = line.Split(' ', 6, StringSplitOptions.RemoveEmptyEntries | StringSplitOptions.TrimEntries);
                if (fields.Length < 6)
                {
                    continue;
                }

                if (fields[5].StartsWith(folder, StringComparison.Ordinal) && !fields[5].EndsWith(" (deleted)", StringComparison.Ordinal))
                {
                    return fields[5];
                }

                string[] device = fields[3].Split(':');
                if (files.TryGetValue(
                    new PosixFile.Identity(
                        uint.Parse(device[0], NumberStyles.HexNumber, CultureInfo.InvariantCulture),
                        uint.Parse(device[1], NumberStyles.HexNumber, CultureInfo.InvariantCulture),
                        ulong.Parse(fields[4], CultureInfo.InvariantCulture)),
                    out string? file))
                {
                    return file;
                }
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // It has ended, or belongs to another user.
        }

        return null;
    }
}
