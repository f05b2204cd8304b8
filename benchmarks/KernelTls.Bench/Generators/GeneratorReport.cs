namespace KernelTls.Bench.Generators;

/// <summary>Represents what a load generator measured.</summary>
/// <param name="Requests">The number of requests that were answered.</param>
/// <param name="PerSecond">The number of requests per second.</param>
/// <param name="Mean">The mean duration of a request.</param>
/// <param name="Median">The median duration of a request.</param>
/// <param name="Percentile99">The 99th percentile of the duration of a request.</param>
internal sealed record GeneratorReport(int Requests, double PerSecond, TimeSpan Mean, TimeSpan Median, TimeSpan Percentile99);
