using Microsoft.Win32.SafeHandles;

namespace KernelTls.Tests;

/// <summary>
/// Creates a file, open for reading, whose bytes are the pattern's at the same position. It is deleted with the test.
/// </summary>
internal sealed class PatternFile : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    /// <summary>Creates the file.</summary>
    /// <param name="count">The number of bytes.</param>
    /// <param name="start">The offset of the first byte written. Before it the file has a hole.</param>
    /// <param name="options">The options of the handle.</param>
    public PatternFile(int count, long start = 0, FileOptions options = FileOptions.None)
    {
        FullName = _directory["file"];
        using (SafeFileHandle file = File.OpenHandle(FullName, FileMode.CreateNew, FileAccess.Write))
        {
            RandomAccess.Write(file, Pattern.Take(count, start), start);
        }

        Handle = File.OpenHandle(FullName, FileMode.Open, FileAccess.Read, FileShare.ReadWrite, options);
    }

    public string FullName { get; }

    public SafeFileHandle Handle { get; }

    public void Dispose()
    {
        Handle.Dispose();
        _directory.Dispose();
    }
}
