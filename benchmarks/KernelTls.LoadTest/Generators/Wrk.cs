using System.Globalization;

namespace KernelTls.LoadTest.Generators;

/// <summary>Represents wrk, which speaks HTTP/1.1.</summary>
internal sealed class Wrk() : Generator("wrk", "wrk")
{
    private const string Mark = "report:";

    public override GeneratorReport? Read(string output, string directory)
    {
        string? line = output.Split('\n').LastOrDefault(line => line.StartsWith(Mark, StringComparison.Ordinal));
        if (line is null)
        {
            return null;
        }

        // Requests, microseconds, answers of another status, other errors, and six durations in microseconds.
        double[] figures = [.. line[Mark.Length..].Split(' ', StringSplitOptions.RemoveEmptyEntries).Select(word => double.Parse(word, CultureInfo.InvariantCulture))];
        return new GeneratorReport((long)figures[0], figures[1] / 1e6, (long)figures[2], (long)figures[3], [.. figures[4..].Select(time => time / 1000)]);
    }

    protected override IEnumerable<string> Arguments(GeneratorOptions options, int seconds, string directory)
    {
        string script = Path.Combine(directory, "script.lua");
        File.WriteAllText(script, $$"""
            {{(options.RequestContentSize > 0 ? $"wrk.method = 'POST' wrk.body = string.rep('x', {options.RequestContentSize})" : "")}}
            function done(summary, latency, requests)
                local e = summary.errors
                io.write(string.format('{{Mark}} %d %d %d %d %f %f %f %f %f %f\n', summary.requests, summary.duration,
                    e.status, e.connect + e.read + e.write + e.timeout,
                    latency.min, latency:percentile(50), latency:percentile(75), latency:percentile(90), latency:percentile(99), latency.max))
            end
            """);

        // By default an answer after more than two seconds is an error.
        return
        [
            "--timeout", "30s", "--threads", $"{Math.Min(options.Threads, options.Connections)}", "--connections", $"{options.Connections}",
            "--duration", $"{seconds}s", "--script", script, options.Target.AbsoluteUri,
        ];
    }
}
