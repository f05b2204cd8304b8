namespace KernelTls.Bench.Wall;

/// <summary>What --wall --json writes.</summary>
internal sealed record WallResults(
    string Machine, string Kernel, string OpenSsl, string Runtime, IReadOnlyList<WallMeasurement> Rows);
