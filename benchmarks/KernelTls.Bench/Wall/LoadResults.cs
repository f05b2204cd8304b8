namespace KernelTls.Bench.Wall;

/// <summary>Represents the content of the file that --load --json writes.</summary>
internal sealed record LoadResults(
    string Machine, string Kernel, string OpenSsl, string Runtime, IReadOnlyList<LoadMeasurement> Rows);
