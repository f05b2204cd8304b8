using System.Globalization;
using System.Reflection;
using System.Text.RegularExpressions;

namespace KernelTls.Tool.Tests;

/// <summary>Tests that ktls --help and docs/troubleshooting.md have each exit code, and no other.</summary>
public class ExitCodeTests
{
    private static readonly int[] s_codes =
    [
        .. typeof(ExitCode).GetFields(BindingFlags.Public | BindingFlags.Static | BindingFlags.FlattenHierarchy)
            .Where(f => f.FieldType == typeof(int)).Select(f => (int)f.GetValue(null)!).Order(),
    ];

    [Fact]
    public void In_the_help() => Assert.Equal(s_codes, Codes(ExitCode.Explanation, @"^  (\d+) "));

    [Fact]
    public void In_the_document() =>
        Assert.Equal(s_codes, Codes(File.ReadAllText(Path.Combine(AppContext.BaseDirectory, "troubleshooting.md")), @"^\| (\d+) \|"));

    private static IEnumerable<int> Codes(string text, string pattern) =>
        Regex.Matches(text, pattern, RegexOptions.Multiline).Select(m => int.Parse(m.Groups[1].Value, CultureInfo.InvariantCulture));
}
