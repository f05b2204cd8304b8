using System.Text;

namespace KernelTls.Bench.Report;

/// <summary>Formats Markdown tables with names aligned to the left and figures aligned to the right.</summary>
internal static class MarkdownTable
{
    public static void AppendHead(StringBuilder page, params string[] titles)
    {
        page.Append('\n');
        AppendLine(page, titles);
        AppendLine(page, [.. titles.Select((_, column) => column == 0 ? "---" : "---:")]);
    }

    public static void AppendLine(StringBuilder page, params string[] fields) =>
        page.Append("| ").AppendJoin(" | ", fields.Select(field => field.Replace("|", "\\|", StringComparison.Ordinal))).Append(" |\n");
}
