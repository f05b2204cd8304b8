namespace KernelTls.Bench.Servers;

/// <summary>A directory of its own with what a server serves, its certificate and the authority that signed it.</summary>
internal sealed class ServedFiles : IDisposable
{
    private readonly DirectoryInfo _directory = Directory.CreateTempSubdirectory("kerneltls-bench-");

    /// <param name="sizes">A file each, which has its size as its name.</param>
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

    /// <summary>The files, and nothing else.</summary>
    public static string RootIn(string directory) => Path.Combine(directory, "files");

    public void Dispose() => _directory.Delete(recursive: true);
}
