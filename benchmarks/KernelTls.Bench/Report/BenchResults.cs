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
        .. Rows.Select(row => FindGoal(row)?.DescribeUnchecked(row, Rows)).OfType<string>(),
    ];

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

    /// <summary>Returns the goal of a row of these results for their runtime, or null if there is none.</summary>
    public Goal? FindGoal(Measurement row) => Goal.Find(row, RuntimeMajor);

    public Measurement? Find(string scenario, string mode) =>
        Rows.FirstOrDefault(row => row.Scenario == scenario && row.Mode == mode);

    /// <summary>
    /// Returns the minimum cost of a row: the cost of the row without TLS, and the cost of bare crypto for each byte of
    /// payload. Returns null if it is not known.
    /// </summary>
    public double? FloorOf(Measurement row)
    {
        if (row.Mode == ModeTable.Floor || Find(row.Scenario, ModeTable.Floor) is not { } plain)
        {
            return null;
        }

        double payload = row.Unit == Measurement.Instructions ? Row.All.FirstOrDefault(one => one.Name == row.Scenario)?.Payload ?? 0 : 0;
        return plain.PerOp + payload * (CryptoPerByte ?? 0);
    }
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
