using System.Security.Cryptography;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>A copy of a published application, which <c>ktls weave</c> changes.</summary>
internal sealed class PublishedFolder : IDisposable
{
    private static readonly string s_tool = Repository.Built("KernelTls.Tool");

    private readonly TemporaryDirectory _directory = new();

    public PublishedFolder(string published)
    {
        foreach (string file in Directory.GetFiles(published, "*", SearchOption.AllDirectories))
        {
            string copy = this[Path.GetRelativePath(published, file)];
            Directory.CreateDirectory(Path.GetDirectoryName(copy)!);
            File.Copy(file, copy);
        }
    }

    public string FullName => _directory["application"];

    public string this[string file] => Path.Combine(FullName, file);

    /// <summary>Runs the tool of this build, which must end with this code, and returns its output and its errors.</summary>
    public async Task<string> WeaveAsync(int code, params string[] arguments)
    {
        using Application tool = Application.Start("sh", FullName, [], ["-c", "exec dotnet \"$@\" 2>&1", "sh", s_tool, "weave", FullName, .. arguments]);
        int ended = await tool.ExitAsync();
        Assert.True(ended == code, $"Exit code {ended}, not {code}: {tool.Said}");
        return tool.Said;
    }

    /// <summary>Returns the hash and the permissions of every file.</summary>
    public SortedDictionary<string, string> Contents()
    {
        SortedDictionary<string, string> contents = new(StringComparer.Ordinal);
        foreach (string file in Directory.GetFiles(FullName, "*", SearchOption.AllDirectories))
        {
#pragma warning disable CA1416 // The tool is for Linux.
            contents[Path.GetRelativePath(FullName, file)] = $"{Convert.ToHexString(SHA256.HashData(File.ReadAllBytes(file)))} {File.GetUnixFileMode(file)}";
#pragma warning restore CA1416
        }

        return contents;
    }

    public void Dispose() => _directory.Dispose();
}
