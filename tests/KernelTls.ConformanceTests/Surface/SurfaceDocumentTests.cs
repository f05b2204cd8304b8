using System.Text;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests that docs/differences.md lists the accepted differences of what the stack shows.</summary>
public class SurfaceDocumentTests
{
    [Fact]
    public void The_accepted_differences_are_documented() =>
        GeneratedTable.Check("docs/differences.md", typeof(SurfaceDocumentTests), "tests/Shared/Surface/SurfaceDifferences.cs", Render());

    private static string Render()
    {
        StringBuilder table = new();
        foreach ((string title, string stock, IReadOnlyList<SurfaceDifference> differences) in new[]
        {
            ("a peer sees", "SslStream", SurfaceDifferences.Wire),
            ("a caller of the stream sees", "SslStream", SurfaceDifferences.Caller),
            ("a caller of HttpClient sees", "HttpClient", SurfaceDifferences.HttpClient),
            ("an application on Kestrel sees", "Kestrel", SurfaceDifferences.Kestrel),
        })
        {
            table.Append($"\n| what {title} | where | {stock} | this library | why |\n|---|---|---|---|---|\n");
            foreach (SurfaceDifference each in differences)
            {
                table.Append($"| {Text(each.Members)} | {Text(each.Where)}{When(each)} | {Text([each.Stock])} | {Text([each.Actual])} | {each.Why} |\n");
            }
        }

        return $"{table}\n";
    }

    private static string Text(string[] patterns) => string.Join("; ", patterns.Select(p => p == "*" ? "any" : p.Replace("*", "\u2026", StringComparison.Ordinal)));

    private static string When(SurfaceDifference each) =>
        $"{(each.IsKernelOnly ? ", kernel" : "")}{(each.When.Text.Length > 0 ? $", {each.When.Text}" : "")}";
}
