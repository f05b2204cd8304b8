namespace KernelTls.Bench.Wall;

/// <summary>Represents consecutive measurements of a mode and of the stock stream.</summary>
internal sealed record LoadPair(WallMeasurement Stock, WallMeasurement Measured);
