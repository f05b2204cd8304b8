namespace KernelTls.Bench.Servers;

/// <summary>
/// Represents a temporary directory with the files of a server, its certificate and the authority that signed it.
/// </summary>
internal sealed class ServedFiles : IDisposable
{
    private readonly DirectoryInfo _directory = Directory.CreateTempSubdirectory("kerneltls-bench-");

    /// <param name="sizes">The sizes of the files. The name of each file is its size.</param>
    public ServedFiles(params IEnumerable<int> sizes)
    {
        new BenchCertificates().WriteTo(FullName);
        Directory.CreateDirectory(RootIn(FullName));
        foreach (int size in sizes)
        {
            File.WriteAllBytes(Path.Combine(RootIn(FullName), $"{size}"), new byte[size]);
        }
    }

    public string FullName => _directory.FullName;

    /// <summary>Returns the path of the directory that contains only the files.</summary>
    public static string RootIn(string directory) => Path.Combine(directory, "files");

    public void Dispose() => _directory.Delete(recursive: true);
}
