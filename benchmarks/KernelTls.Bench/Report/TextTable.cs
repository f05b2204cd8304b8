using System.Globalization;

namespace KernelTls.Bench.Report;

/// <summary>
/// Formats figures and writes columns to a terminal, with an empty line before each change of the first column.
/// </summary>
internal sealed class TextTable
{
    private readonly List<string[]> _lines;
    private readonly int[] _figures;

    /// <param name="head">The headings of the columns.</param>
    /// <param name="figures">The indexes of the columns that contain figures, which are aligned to the right.</param>
    public TextTable(string[] head, params int[] figures)
    {
        _lines = [head];
        _figures = figures;
    }

    public void Add(params string[] line) => _lines.Add(line);

    public void Write(TextWriter output)
    {
        int[] widths = [.. Enumerable.Range(0, _lines[0].Length).Select(column => _lines.Max(line => line[column].Length))];
        string previous = "";
        foreach (string[] line in _lines)
        {
            if (line[0] != previous)
            {
                output.WriteLine();
                previous = line[0];
            }

            output.WriteLine(string.Join("  ", line.Select((text, column) => _figures.Contains(column)
                ? text.PadLeft(widths[column])
                : text.PadRight(widths[column]))).TrimEnd());
        }
    }

    public static string Amount(double amount, string unit) =>
        unit == Measurement.Instructions ? Text($"{amount / 1000:N1} k") : Text($"{amount:N0} B");

    public static string Count(double? count) => count is { } value ? Text($"{value:N2}") : "-";

    public static string Ratio(double? ratio) => ratio is { } value ? Text($"{value:F3}") : "-";

    public static string Percent(double part) => Text($"{part * 100:F1} %");

    public static string Change(double part) => Text($"{part * 100:+0.0;-0.0;0.0} %");

    public static string Text(FormattableString text) => text.ToString(CultureInfo.InvariantCulture);
}
