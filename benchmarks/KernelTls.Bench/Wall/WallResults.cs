namespace KernelTls.Bench.Wall;

/// <summary>Represents the content of the file that --wall --json writes.</summary>
internal sealed record WallResults(
    string Machine, string Kernel, string OpenSsl, string Runtime, IReadOnlyList<WallMeasurement> Rows);
