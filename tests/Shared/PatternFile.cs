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
            // In parts: whole files in memory would use up the mappings of a process on User-Mode Linux.
            for (int done = 0; done < count;)
            {
                ReadOnlyMemory<byte> part = Pattern.At(start + done, count - done);
                RandomAccess.Write(file, part.Span, start + done);
                done += part.Length;
            }
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
