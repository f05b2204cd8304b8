using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Tests;

/// <summary>Provides fictitious results.</summary>
internal static class Results
{
    /// <summary>
    /// Adds the other figures of a row of load, equal in all modes except for the longest operations.
    /// </summary>
    public static BenchResults WithLoad(this BenchResults results, string scenario, params (string Mode, double Percentile99)[] cells) => results with
    {
        Rows =
        [
            .. results.Rows.Select(row => cells.FirstOrDefault(cell => row.Scenario == scenario && row.Mode == cell.Mode) is { Mode: not null } cell
                ? row with { Load = Figures(cell.Percentile99).WithRatiosTo(Figures(cells[0].Percentile99)) }
                : row),
        ],
    };

    private static LoadFigures Figures(double percentile99) => new(1_000_000, percentile99, SystemCalls: 20.5, Segments: 3, Records: 5, Resumed: null);

    /// <summary>The same figures, on another runtime.</summary>
    public static BenchResults On(this BenchResults results, string runtime) => results with { Runtime = runtime };

    public static BenchResults Of(params (string Scenario, string Mode, double PerOp)[] cells) => Of(cryptoPerByte: null, cells);

    public static BenchResults Of(double? cryptoPerByte, params (string Scenario, string Mode, double PerOp)[] cells)
    {
        Measurement[] rows =
        [
            .. cells.Select(cell => Measurement.Of(
                cell.Scenario, cell.Mode, cell.Scenario == "idle-memory" ? Measurement.Bytes : Measurement.Instructions, null, [cell.PerOp])),
        ];
        return new BenchResults("cell", "9.9.9-kernel", "OpenSSL 9.8.7", ".NET 10.9.8", cryptoPerByte, [.. rows.Select(WithRatio)])
        {
            Nginx = rows.Any(row => row.Mode == ModeTable.Nginx) ? "nginx/9.6" : null,
        };

        Measurement WithRatio(Measurement row)
        {
            string mode = Row.Find(row.Scenario).Reference;
            return rows.FirstOrDefault(other => other.Scenario == row.Scenario && other.Mode == mode) is { } reference
                ? row with { Ratio = row.PerOp / reference.PerOp, RatioTo = mode }
                : row;
        }
    }
}
