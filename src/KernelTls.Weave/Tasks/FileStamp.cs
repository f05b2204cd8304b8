using System.Globalization;

namespace KernelTls.Weave;

/// <summary>Identifies a version of a file by the time of its last change, as MSBuild does, and by its length.</summary>
internal static class FileStamp
{
    /// <summary>Returns the stamp of a file; an empty one if it is not there.</summary>
    public static string Of(string path)
    {
        FileInfo file = new(path);
        return file.Exists
            ? string.Create(CultureInfo.InvariantCulture, $"{file.FullName} {file.Length} {file.LastWriteTimeUtc.Ticks}")
            : "";
    }
}
