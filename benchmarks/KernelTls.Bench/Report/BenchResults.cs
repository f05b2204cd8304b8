using System.Text.Json;
using System.Text.Json.Serialization;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Scenarios;
using KernelTls.Bench.Wall;

namespace KernelTls.Bench.Report;

/// <summary>What --json writes.</summary>
internal sealed record BenchResults(
    string Cell, string Kernel, string OpenSsl, string Runtime, double? CryptoPerByte, IReadOnlyList<Measurement> Rows)
{
    /// <summary>The version, where it was measured.</summary>
    public string? Nginx { get; init; }

    /// <summary>What was to be measured and could not be, each with its reason.</summary>
    public IReadOnlyList<string> Failures { get; init => field = value ?? []; } = [];

    [JsonIgnore]
    public string Surroundings => $"{Cell}: Linux {Kernel}, {OpenSsl}, {Runtime}{(Nginx is null ? "" : $", {Nginx}")}";

    /// <summary>What was asked for and is not known, a line each: failures, and goals that compare with what was not measured.</summary>
    [JsonIgnore]
    public IEnumerable<string> Gaps =>
    [
        .. Failures.Select(failure => $"not measured: {failure}"),
        .. Rows.Select(row => Goal.Find(row)?.DescribeUnchecked(row, Rows)).OfType<string>(),
    ];

    /// <summary>What --json wrote.</summary>
    /// <exception cref="BenchFailedException">It is something else.</exception>
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

    /// <summary>What machines of the same kind have measured, each its rows.</summary>
    /// <exception cref="BenchFailedException">They are not of the same kind.</exception>
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

    /// <summary>Replaces the file as a whole, or leaves it alone; <see langword="null"/>: there is to be none.</summary>
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

    /// <summary>What nobody can do without: the row without TLS and, for each byte of payload, bare crypto; null where unknown.</summary>
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
[JsonSerializable(typeof(IReadOnlyList<Goal>))]
internal sealed partial class BenchJson : JsonSerializerContext;
