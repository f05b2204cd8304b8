namespace KernelTls.Bench.Wall;

/// <summary>Represents a row of load in one mode whose processes are warm, so that it can be measured repeatedly.</summary>
internal interface ILoadSubject : IAsyncDisposable
{
    /// <exception cref="BenchFailedException">The measurement failed. The subject can measure no more.</exception>
    Task<WallMeasurement> MeasureAsync(CancellationToken cancellationToken);
}
