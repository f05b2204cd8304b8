using System.Text.Json;
using System.Text.Json.Serialization;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Scenarios;
using KernelTls.Bench.Wall;

namespace KernelTls.Bench.Report;

/// <summary>Represents the content of the file that --json writes.</summary>
internal sealed record BenchResults(
    string Cell, string Kernel, string OpenSsl, string Runtime, double? CryptoPerByte, IReadOnlyList<Measurement> Rows)
{
    /// <summary>Gets the version of nginx if it was measured.</summary>
    public string? Nginx { get; init; }

    /// <summary>Gets the measurements that failed, each with its reason.</summary>
    public IReadOnlyList<string> Failures { get; init => field = value ?? []; } = [];

    /// <summary>Gets the major version of .NET, or null if it is not known.</summary>
    [JsonIgnore]
    public int? RuntimeMajor => Version.TryParse(Runtime.Split(' ')[^1].Split('-')[0], out Version? version) ? version.Major : null;

    [JsonIgnore]
    public string Surroundings => $"{Cell}: Linux {Kernel}, {OpenSsl}, {Runtime}{(Nginx is null ? "" : $", {Nginx}")}";

    /// <summary>
    /// Gets one line for each missing result: failed measurements, and goals that cannot be checked because they
    /// compare with a measurement that is missing.
    /// </summary>
    [JsonIgnore]
    public IEnumerable<string> Gaps =>
    [
        .. Failures.Select(failure => $"not measured: {failure}"),
        .. Rows.Select(row => Goal.Find(row)?.DescribeUnchecked(row, this)).OfType<string>(),
        .. ImpossibleGoals,
    ];

    /// <summary>Gets one line for each goal that no implementation can meet.</summary>
    [JsonIgnore]
    public IEnumerable<string> ImpossibleGoals => Rows.Select(row => Goal.Find(row)?.DescribeImpossible(row, this)).OfType<string>();

    /// <summary>Reads a file that --json wrote.</summary>
    /// <exception cref="BenchFailedException">The file has another format.</exception>
    public static BenchResults Read(string path)
    {
        try
        {
            return JsonSerializer.Deserialize(File.ReadAllText(path), BenchJson.Default.BenchResults) is { Rows: not null } results
                ? results
                : throw new BenchFailedException($"'{path}' has no results");
        }
        catch (JsonException e)
        {
            throw new BenchFailedException($"'{path}' is not what --json writes: {e.Message}");
        }
    }

    /// <summary>Joins the results of machines of the same kind, each of which measured some of the rows.</summary>
    /// <exception cref="BenchFailedException">The machines are not of the same kind.</exception>
    public static BenchResults Join(IReadOnlyList<BenchResults> parts)
    {
        BenchResults first = parts[0];
        foreach (BenchResults part in parts)
        {
            if ((part.Cell, part.Kernel, part.OpenSsl, part.Runtime) != (first.Cell, first.Kernel, first.OpenSsl, first.Runtime))
            {
                throw new BenchFailedException($"these are not parts of one table: '{first.Surroundings}' and '{part.Surroundings}'");
            }
        }

        return first with
        {
            CryptoPerByte = parts.FirstOrDefault(part => part.CryptoPerByte is not null)?.CryptoPerByte,
            Rows = [.. Row.All.SelectMany(row => parts.SelectMany(part => part.Rows.Where(measured => measured.Scenario == row.Name)))],
            Nginx = parts.FirstOrDefault(part => part.Nginx is not null)?.Nginx,
            Failures = [.. parts.SelectMany(part => part.Failures)],
        };
    }

    /// <summary>
    /// Replaces the whole file, or leaves it unchanged if writing fails. Writes nothing if the path is
    /// <see langword="null"/>.
    /// </summary>
    public void WriteTo(string? path)
    {
        if (path is not null)
        {
            string unfinished = path + ".unfinished";
            File.WriteAllText(unfinished, JsonSerializer.Serialize(this, BenchJson.Default.BenchResults));
            File.Move(unfinished, path, overwrite: true);
        }
    }

    public Measurement? Find(string scenario, string mode) =>
        Rows.FirstOrDefault(row => row.Scenario == scenario && row.Mode == mode);

    /// <summary>
    /// Returns the minimum cost of a row: its cost without TLS, and the cost of bare crypto for each byte of payload. A file costs at least an
    /// empty response and its share of a large file that the kernel sends without TLS. Returns null if it is not known.
    /// </summary>
    public double? FloorOf(Measurement row)
    {
        if (row.Mode == ModeTable.Floor || PlainOf(row.Scenario) is not { } plain)
        {
            return null;
        }

        double payload = row.Unit == Measurement.Instructions ? Row.All.FirstOrDefault(one => one.Name == row.Scenario)?.Payload ?? 0 : 0;
        return plain + payload * (CryptoPerByte ?? 0);
    }

    /// <summary>
    /// Returns what is left of the stock stream's cost of TLS: the part above the floor, as a fraction of the stock stream's part. Returns
    /// null if it is not known.
    /// </summary>
    public double? OverheadLeftOf(Measurement row) =>
        Find(row.Scenario, ModeTable.Stock) is { } stock && FloorOf(row) is { } floor && stock.PerOp > floor
            ? Math.Round((row.PerOp - floor) / (stock.PerOp - floor), 3)
            : null;

    /// <summary>
    /// Returns the lowest ratio to the stock stream that is possible in a row's mode, or null if it is not known. An end that uses the stock
    /// stream keeps what that end costs, which is what the other end alone does not save.
    /// </summary>
    public double? FloorRatioOf(Measurement row)
    {
        if (Find(row.Scenario, ModeTable.Stock) is not { } stock || FloorOf(stock) is not { } floor)
        {
            return null;
        }

        string? other = row.Mode switch
        {
            ModeTable.KernelClient => ModeTable.KernelServer,
            ModeTable.KernelServer => ModeTable.KernelClient,
            _ => null,
        };
        double saved = other is null ? 0 : Math.Max(0, stock.PerOp - (Find(row.Scenario, other)?.PerOp ?? stock.PerOp));
        return (floor + saved) / stock.PerOp;
    }

    private double? PlainOf(string scenario) => Row.All.FirstOrDefault(row => row.Name == scenario)?.File is { } file
        ? Find(file.EmptyRow, ModeTable.Floor)?.PerOp + (Find(Row.SentFile, ModeTable.Floor)?.PerOp * file.Size / Row.SentFileSize)
        : Find(scenario, ModeTable.Floor)?.PerOp;
}

[JsonSourceGenerationOptions(PropertyNamingPolicy = JsonKnownNamingPolicy.CamelCase)]
[JsonSerializable(typeof(BenchResults))]
[JsonSerializable(typeof(Measurement))]
[JsonSerializable(typeof(PublishedReport))]
[JsonSerializable(typeof(WallResults))]
[JsonSerializable(typeof(WallMeasurement))]
[JsonSerializable(typeof(LoadResults))]
[JsonSerializable(typeof(IReadOnlyList<Goal>))]
internal sealed partial class BenchJson : JsonSerializerContext;
