using KernelTls.LoadTest.Report;

namespace KernelTls.LoadTest.Generators;

/// <summary>Runs another program as the client and reports its figures under the names that an HTTP client's have.</summary>
internal sealed class GeneratorLoad(GeneratorOptions options)
{
    public async Task RunAsync(CancellationToken cancellationToken)
    {
        if (options.Warmup > 0)
        {
            await options.Generator.RunAsync(options, WholeSeconds(options.Warmup), cancellationToken);
        }

        GeneratorReport report = await options.Generator.RunAsync(options, WholeSeconds(options.Duration), cancellationToken);
        if (report.Requests == report.Bad)
        {
            throw new LoadTestFailedException($"no request was answered well: {report.Bad} bad answers, {report.Errors} errors");
        }

        Results results = new();
        results.Add(Metrics.Requests, report.Requests);
        results.Add(Metrics.RequestsPerSecond, report.Requests / report.Seconds);
        results.Add(Metrics.BadResponses, report.Bad);
        results.Add(Metrics.Errors, report.Errors);
        Metrics.ContentEnd.Add(results, report.Times);
        results.AddEnvironment();
        results.Tell();
    }

    /// <summary>The programs take whole seconds, and at least one.</summary>
    private static int WholeSeconds(double seconds) => (int)Math.Ceiling(seconds);
}
