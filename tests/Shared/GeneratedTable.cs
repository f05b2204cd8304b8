using System.Runtime.CompilerServices;

namespace KernelTls.Tests;

/// <summary>Checks or writes a part of a document that is generated from the tests' data.</summary>
internal static class GeneratedTable
{
    private const string Update = "KERNELTLS_UPDATE_DOCS";
    private const string End = "<!-- end -->";

    /// <summary>Asserts that the part is as expected or, if the environment says so, writes it.</summary>
    /// <param name="document">The document's path in the repository.</param>
    /// <param name="test">The test that owns the part. The line above the part names it.</param>
    /// <param name="source">The file of the data.</param>
    /// <param name="expected">The part.</param>
    public static void Check(string document, Type test, string source, string expected)
    {
        string begin = $"<!-- Written by {test.Name}, with {Update}=1: begin -->\n";
        string path = Find(document);
        string text = File.ReadAllText(path);
        int from = text.IndexOf(begin, StringComparison.Ordinal);
        int to = from < 0 ? from : text.IndexOf(End, from, StringComparison.Ordinal);
        Assert.True(to >= 0, $"{path} has no place for the table: a line '{begin.TrimEnd()}', and below it '{End}'.");
        from += begin.Length;
        if (Environment.GetEnvironmentVariable(Update) == "1")
        {
            File.WriteAllText(path, text[..from] + expected + text[to..]);
            return;
        }

        Assert.True(text[from..to] == expected, $"{path} has another table than {source}: run this test with {Update}=1.");
    }

    /// <summary>Finds the document in the repository in which this program was built.</summary>
    private static string Find(string name)
    {
        string? folder = AppContext.BaseDirectory;
        while (folder is not null && !File.Exists(Path.Combine(folder, name)))
        {
            folder = Path.GetDirectoryName(folder);
        }

        Assert.True(folder is not null, $"no {name} above {AppContext.BaseDirectory}");
        return Path.Combine(folder, name);
    }
}
