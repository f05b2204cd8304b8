namespace KernelTls.LoadTest.Generators;

/// <summary>Represents what a load generator reported.</summary>
/// <param name="Requests">The number of requests that were answered.</param>
/// <param name="Seconds">The duration of the run.</param>
/// <param name="Bad">The number of answers with another status than success.</param>
/// <param name="Errors">The number of requests without an answer.</param>
/// <param name="Times">The durations of requests in milliseconds: min, p50, p75, p90, p99, max.</param>
internal sealed record GeneratorReport(long Requests, double Seconds, long Bad, long Errors, IReadOnlyList<double> Times);
