using System.Text.RegularExpressions;

namespace KernelTls.PackageTests;

/// <summary>Reads the commands and the code of README.md.</summary>
internal static partial class Readme
{
    private static readonly string s_text = File.ReadAllText(Path.Combine(Repository.Root, "README.md"));

    /// <summary>Returns the lines of the only block of code that contains this text.</summary>
    public static string[] BlockWith(string text)
    {
        string[] blocks = [.. Block().Matches(s_text).Select(m => m.Groups[1].Value)];
        return Assert.Single(blocks, b => b.Contains(text, StringComparison.Ordinal)).TrimEnd().Split('\n');
    }

    [GeneratedRegex(@"^```\w*\n(.*?)^```$", RegexOptions.Multiline | RegexOptions.Singleline)]
    private static partial Regex Block();
}
