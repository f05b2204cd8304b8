using System.Text.Json.Serialization;

namespace KernelTls.Bench.Report;

/// <summary>What --json writes.</summary>
internal sealed record BenchResults(
    string Cell, string Kernel, string OpenSsl, string Runtime, double? CryptoPerByte, IReadOnlyList<Measurement> Rows);

[JsonSourceGenerationOptions(PropertyNamingPolicy = JsonKnownNamingPolicy.CamelCase)]
[JsonSerializable(typeof(BenchResults))]
[JsonSerializable(typeof(Measurement))]
[JsonSerializable(typeof(IReadOnlyList<Goal>))]
internal sealed partial class BenchJson : JsonSerializerContext;
