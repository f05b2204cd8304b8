using Microsoft.Win32.SafeHandles;

namespace KernelTls.Tests;

/// <summary>A file, open for reading, whose bytes are the pattern's at the same position. It goes with the test.</summary>
internal sealed class PatternFile : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    /// <param name="count">So many bytes.</param>
    /// <param name="start">The first that is written; before it the file has a hole.</param>
    /// <param name="options">How the handle is opened.</param>
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
