using System.Security;
using System.Text;

namespace KernelTls.Bench.Report;

/// <summary>
/// Draws a horizontal bar chart as SVG. Some series are bars, and others are marks across the bars. A line marks the
/// value 1.
/// </summary>
internal sealed class BarChart
{
    private const int LabelWidth = 190;
    private const int PlotWidth = 560;
    private const int ValueWidth = 40;
    private const int BarHeight = 14;
    private const int RowGap = 12;
    private const int HeadHeight = 64;
    private const int FootHeight = 26;
    private const int LetterWidth = 7;
    private const int MostTicks = 10;

    private static readonly double[] s_steps = [0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10];

    private readonly string _title;
    private readonly Series[] _series;
    private readonly List<(string Name, double?[] Values)> _rows = [];

    public BarChart(string title, params Series[] series)
    {
        _title = title;
        _series = series;
    }

    /// <param name="name">The label of the row.</param>
    /// <param name="values">One value for each series, or null for a series without a value.</param>
    public void Add(string name, params double?[] values) => _rows.Add((name, values));

    public string ToSvg()
    {
        double most = Math.Max(1, _rows.SelectMany(row => row.Values).Max() ?? 1);
        double step = s_steps.FirstOrDefault(step => most / step <= MostTicks, s_steps[^1]);
        double end = Math.Ceiling(most / step) * step;
        int rowHeight = Math.Max(1, _series.Count(series => !series.IsMark)) * BarHeight + RowGap;
        int plotHeight = _rows.Count * rowHeight;
        int width = LabelWidth + PlotWidth + ValueWidth;
        int height = HeadHeight + plotHeight + FootHeight;

        double X(double value) => LabelWidth + (PlotWidth * value / end);

        StringBuilder svg = new();
        Append(svg, $"""<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" """);
        Append(svg, $"""font-family="sans-serif" font-size="12" role="img"><title>{Escape(_title)}</title>{'\n'}""");
        Append(svg, $"""<rect width="{width}" height="{height}" fill="#ffffff"/>{'\n'}""");
        Append(svg, $"""<text x="12" y="22" font-size="15" font-weight="bold">{Escape(_title)}</text>{'\n'}""");
        AppendLegend(svg);
        for (int tick = 0; tick * step <= end + (step / 2); tick++)
        {
            double x = X(tick * step);
            Append(svg, $"""<line x1="{x:F1}" y1="{HeadHeight}" x2="{x:F1}" y2="{HeadHeight + plotHeight}" stroke="#dddddd"/>{'\n'}""");
            Append(svg, $"""<text x="{x:F1}" y="{HeadHeight + plotHeight + 17}" text-anchor="middle" fill="#555555">{tick * step:0.##}</text>{'\n'}""");
        }

        int y = HeadHeight;
        foreach ((string name, double?[] values) in _rows)
        {
            AppendRow(svg, name, values, y, rowHeight, X);
            y += rowHeight;
        }

        Append(svg, $"""<line x1="{X(1):F1}" y1="{HeadHeight}" x2="{X(1):F1}" y2="{y}" stroke="#222222" stroke-width="1.5"/>{'\n'}""");
        svg.Append("</svg>\n");
        return svg.ToString();
    }

    private void AppendLegend(StringBuilder svg)
    {
        int x = 12;
        foreach (Series series in _series)
        {
            Append(svg, $"""<rect x="{x}" y="36" width="{(series.IsMark ? 4 : 12)}" height="12" fill="{series.Color}"/>""");
            Append(svg, $"""<text x="{x + 17}" y="46">{Escape(series.Name)}</text>{'\n'}""");
            x += 34 + (LetterWidth * series.Name.Length);
        }
    }

    private void AppendRow(StringBuilder svg, string name, double?[] values, int top, int height, Func<double, double> toX)
    {
        Append(svg, $"""<text x="{LabelWidth - 8}" y="{top + (height / 2) + 4}" text-anchor="end">{Escape(name)}</text>{'\n'}""");
        int y = top + (RowGap / 2);
        foreach ((Series series, double value) in ValuesOf(values, isMark: false))
        {
            double end = toX(value);
            Append(svg, $"""<rect class="bar" x="{LabelWidth}" y="{y}" width="{end - LabelWidth:F1}" height="{BarHeight - 1}" fill="{series.Color}">""");
            Append(svg, $"""<title>{Escape(name)}, {Escape(series.Name)}: {value:F3}</title></rect>""");
            bool fits = end - LabelWidth > ValueWidth;
            string place = fits ? "text-anchor=\"end\" fill=\"#ffffff\"" : "fill=\"#222222\"";
            Append(svg, $"""<text x="{end + (fits ? -6 : 6):F1}" y="{y + BarHeight - 3}" font-size="11" {place}>{value:F2}</text>{'\n'}""");
            y += BarHeight;
        }

        foreach ((Series series, double value) in ValuesOf(values, isMark: true))
        {
            Append(svg, $"""<rect class="mark" x="{toX(value) - 2:F1}" y="{top + 2}" width="4" height="{height - 4}" fill="{series.Color}">""");
            Append(svg, $"""<title>{Escape(name)}, {Escape(series.Name)}: {value:F3}</title></rect>{'\n'}""");
        }
    }

    private IEnumerable<(Series Series, double Value)> ValuesOf(double?[] values, bool isMark) =>
        from pair in _series.Zip(values)
        where pair.First.IsMark == isMark && pair.Second is not null
        select (pair.First, pair.Second!.Value);

    private static void Append(StringBuilder svg, FormattableString text) => svg.Append(TextTable.Text(text));

    private static string Escape(string text) => SecurityElement.Escape(text);

    internal sealed record Series(string Name, string Color, bool IsMark = false);
}
