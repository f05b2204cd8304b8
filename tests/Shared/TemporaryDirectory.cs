namespace KernelTls.Tests;

/// <summary>Creates a directory that is deleted with the test.</summary>
internal sealed class TemporaryDirectory : IDisposable
{
    public string FullName { get; } = Directory.CreateTempSubdirectory("kerneltls").FullName;

    public string this[string name] => Path.Combine(FullName, name);

    public void Dispose() => Directory.Delete(FullName, recursive: true);
}
