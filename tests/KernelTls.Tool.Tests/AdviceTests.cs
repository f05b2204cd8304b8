using KernelTls.Diagnostics;

namespace KernelTls.Tool.Tests;

/// <summary>Tests that the tool and the document have advice for every reason.</summary>
public class AdviceTests
{
    public static TheoryData<KtlsFallbackReason> Reasons => [.. Enum.GetValues<KtlsFallbackReason>()];

    [Theory]
    [MemberData(nameof(Reasons))]
    public void The_tool_knows_what_to_do(KtlsFallbackReason reason) => Assert.NotEqual(Advice.Unknown, Advice.On(reason));

    [Theory]
    [MemberData(nameof(Reasons))]
    public void The_document_has_a_row_for_it(KtlsFallbackReason reason)
    {
        string[] lines = File.ReadAllLines(Path.Combine(AppContext.BaseDirectory, "troubleshooting.md"));
        if (reason != KtlsFallbackReason.None)
        {
            string row = Assert.Single(lines, l => l.StartsWith($"| `{reason}` |", StringComparison.Ordinal));
            Assert.True(row.Split('|').Length == 5, $"Expected what it means and what to do: {row}");
        }
    }
}
