using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Tests;

/// <summary>Results that nobody has measured.</summary>
internal static class Results
{
    public static BenchResults Of(params (string Scenario, string Mode, double PerOp)[] cells) => Of(cryptoPerByte: null, cells);

    public static BenchResults Of(double? cryptoPerByte, params (string Scenario, string Mode, double PerOp)[] cells)
    {
        Measurement[] rows =
        [
            .. cells.Select(cell => Measurement.Of(
                cell.Scenario, cell.Mode, cell.Scenario == "idle-memory" ? Measurement.Bytes : Measurement.Instructions, null, [cell.PerOp])),
        ];
        return new BenchResults("cell", "9.9.9-kernel", "OpenSSL 9.8.7", ".NET 99", cryptoPerByte, [.. rows.Select(WithRatio)])
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
