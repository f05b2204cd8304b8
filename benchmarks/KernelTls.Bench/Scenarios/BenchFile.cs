using Microsoft.Win32.SafeHandles;

namespace KernelTls.Bench.Scenarios;

/// <summary>Represents a file of the given size in the page cache. Disposing the object deletes the file.</summary>
internal sealed class BenchFile : IDisposable
{
    public BenchFile(int length)
    {
        Path = System.IO.Path.GetTempFileName();
        File.WriteAllBytes(Path, new byte[length]);
        Length = length;
        Handle = File.OpenHandle(Path);
    }

    public string Path { get; }

    public long Length { get; }

    public SafeFileHandle Handle { get; }

    public void Dispose()
    {
        Handle.Dispose();
        File.Delete(Path);
    }
}
