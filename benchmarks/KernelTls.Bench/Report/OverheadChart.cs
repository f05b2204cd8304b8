using System.Security;
using System.Text;

namespace KernelTls.Bench.Report;

/// <summary>
/// Draws what is left of the cost of TLS as SVG: the base line is the floor, a row's gray bar is the stock stream's cost above it, and the
/// bar inside is what the same row costs with kernel TLS.
/// </summary>
internal sealed class OverheadChart
{
    private const int LabelWidth = 190;
    private const int PlotWidth = 480;
    private const int ValueWidth = 120;
    private const int BarHeight = 16;
    private const int RowHeight = 24;
    private const int HeadHeight = 84;
    private const int FootHeight = 30;

    /// <summary>The largest fraction that is drawn. The text beside a bar has the value.</summary>
    private const double Most = 1.1;

    private const string Title = "What is left of the cost of TLS: less is better";

    private readonly List<(string Name, double Kernel, double? Direct)> _rows = [];

    /// <param name="name">The label of the row.</param>
    /// <param name="kernel">What is left with kernel TLS, as a fraction.</param>
    /// <param name="direct">What is left with OpenSSL on the socket, or null if it was not measured.</param>
    public void Add(string name, double kernel, double? direct) => _rows.Add((name, kernel, direct));

    public string ToSvg()
    {
        int bottom = HeadHeight + (_rows.Count * RowHeight);
        int width = LabelWidth + PlotWidth + ValueWidth;
        StringBuilder svg = new();
        Append(svg, $"""<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + FootHeight}" viewBox="0 0 {width} {bottom + FootHeight}" """);
        Append(svg, $"""font-family="sans-serif" font-size="12" role="img"><title>{Title}</title>{'\n'}""");
        Append(svg, $"""<rect width="{width}" height="{bottom + FootHeight}" fill="#ffffff"/>{'\n'}""");
        Append(svg, $"""<text x="12" y="22" font-size="15" font-weight="bold">{Title}</text>{'\n'}""");
        Append(svg, $"""<rect x="12" y="36" width="12" height="12" fill="#d0d0d0"/><text x="29" y="46">SslStream: cost above the floor</text>{'\n'}""");
        Append(svg, $"""<rect x="230" y="36" width="12" height="12" fill="#3b7dd8"/><text x="247" y="46">kernel TLS at both ends</text>{'\n'}""");
        Append(svg, $"""<rect x="410" y="36" width="4" height="12" fill="#d2691e"/><text x="421" y="46">OpenSSL on the socket at both ends</text>{'\n'}""");
        Append(svg, $"""<text x="{LabelWidth}" y="{HeadHeight - 10}" text-anchor="middle" fill="#555555">floor: no TLS, bare crypto</text>{'\n'}""");
        Append(svg, $"""<text x="{ToX(1):F1}" y="{HeadHeight - 10}" text-anchor="middle" fill="#555555">SslStream</text>{'\n'}""");
        for (int i = 0; i < _rows.Count; i++)
        {
            AppendRow(svg, _rows[i], HeadHeight + (i * RowHeight));
        }

        Append(svg, $"""<line x1="{LabelWidth}" y1="{HeadHeight}" x2="{LabelWidth}" y2="{bottom}" stroke="#222222" stroke-width="1.5"/>{'\n'}""");
        Append(svg, $"""<text x="{LabelWidth}" y="{bottom + 18}" text-anchor="middle" fill="#555555">0 %</text>{'\n'}""");
        Append(svg, $"""<text x="{ToX(1):F1}" y="{bottom + 18}" text-anchor="middle" fill="#555555">100 %</text>{'\n'}""");
        svg.Append("</svg>\n");
        return svg.ToString();
    }

    private static void AppendRow(StringBuilder svg, (string Name, double Kernel, double? Direct) row, int top)
    {
        int y = top + ((RowHeight - BarHeight) / 2);
        string name = SecurityElement.Escape(row.Name);
        string direct = row.Direct is { } known ? TextTable.Text($" ({known * 100:F0} %)") : "";
        Append(svg, $"""<text x="{LabelWidth - 8}" y="{y + 12}" text-anchor="end">{name}</text>""");
        Append(svg, $"""<rect class="stock" x="{LabelWidth}" y="{y}" width="{ToX(1) - LabelWidth:F1}" height="{BarHeight}" fill="#d0d0d0"/>""");
        Append(svg, $"""<rect class="bar" x="{LabelWidth}" y="{y + 3}" width="{ToX(row.Kernel) - LabelWidth:F1}" height="{BarHeight - 6}" fill="#3b7dd8">""");
        Append(svg, $"""<title>{name}: {row.Kernel * 100:F1} %</title></rect>{'\n'}""");
        if (row.Direct is { } mark)
        {
            Append(svg, $"""<rect class="mark" x="{ToX(mark) - 2:F1}" y="{y}" width="4" height="{BarHeight}" fill="#d2691e"/>{'\n'}""");
        }

        Append(svg, $"""<text x="{ToX(Most) + 8:F1}" y="{y + 12}">{row.Kernel * 100:F0} %{direct}</text>{'\n'}""");
    }

    private static double ToX(double left) => LabelWidth + (PlotWidth * Math.Clamp(left, 0, Most) / Most);

    private static void Append(StringBuilder svg, FormattableString text) => svg.Append(TextTable.Text(text));
}
