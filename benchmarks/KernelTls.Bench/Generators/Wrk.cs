using System.Globalization;

namespace KernelTls.Bench.Generators;

/// <summary>Represents wrk, which speaks HTTP/1.1.</summary>
internal sealed class Wrk() : Generator("wrk")
{
    private const string Report = "report:";

    public override GeneratorReport Read(string output, string directory)
    {
        string line = output.Split('\n').LastOrDefault(line => line.StartsWith(Report, StringComparison.Ordinal))
            ?? throw new BenchFailedException($"wrk wrote no report: {output}");
        double[] figures = [.. line[Report.Length..].Split(' ', StringSplitOptions.RemoveEmptyEntries).Select(word => double.Parse(word, CultureInfo.InvariantCulture))];
        return figures[2] == 0
            ? new GeneratorReport(
                (int)figures[0],
                figures[0] / TimeSpan.FromMicroseconds(figures[1]).TotalSeconds,
                TimeSpan.FromMicroseconds(figures[3]),
                TimeSpan.FromMicroseconds(figures[4]),
                TimeSpan.FromMicroseconds(figures[5]))
            : throw new BenchFailedException($"wrk had {figures[2]} errors: {output}");
    }

    protected override IEnumerable<string> Arguments(GeneratorRow row, Uri target, TimeSpan length, string directory)
    {
        string script = Path.Combine(directory, "script.lua");
        File.WriteAllText(script, $$"""
            {{(row.UploadSize > 0 ? $"wrk.method = 'POST' wrk.body = string.rep('x', {row.UploadSize})" : "")}}
            {{(row.Closes ? "wrk.headers['Connection'] = 'close'" : "")}}
            function done(summary, latency, requests)
                local e = summary.errors
                io.write(string.format('{{Report}} %d %d %d %f %f %f\n', summary.requests, summary.duration,
                    e.connect + e.read + e.write + e.status + e.timeout,
                    latency.mean, latency:percentile(50), latency:percentile(99)))
            end
            """);

        // By default a response after more than two seconds is an error. The 99th percentile shows slow ones.
        return ["--timeout", "30s", "--threads", "1", "--connections", $"{row.Connections}", "--duration", $"{length.TotalSeconds:F0}s", "--script", script, target.AbsoluteUri];
    }
}
