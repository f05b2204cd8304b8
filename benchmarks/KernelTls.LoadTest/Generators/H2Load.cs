using System.Globalization;
using System.Text.RegularExpressions;
using KernelTls.LoadTest.Report;

namespace KernelTls.LoadTest.Generators;

/// <summary>Represents h2load, which speaks HTTP/2.</summary>
internal sealed partial class H2Load() : Generator("h2load", "nghttp2-client")
{
    public override GeneratorReport? Read(string output, string directory)
    {
        Match requests = Requests().Match(output);
        Match rate = Rate().Match(output);
        if (!requests.Success || !rate.Success || !output.Contains("Application protocol: h2", StringComparison.Ordinal))
        {
            return null;
        }

        // Start, status and duration of each request, in microseconds.
        List<long> times = [.. File.ReadLines(Path.Combine(directory, "log"))
            .Select(line => long.Parse(line.AsSpan(line.LastIndexOf('\t') + 1), CultureInfo.InvariantCulture))];
        times.Sort();
        long done = Number(requests, 1);
        double perSecond = double.Parse(rate.Groups[1].ValueSpan, CultureInfo.InvariantCulture);
        return times.Count == 0 || perSecond == 0
            ? null
            : new GeneratorReport(
                done,
                done / perSecond,
                done - Number(requests, 2),
                Number(requests, 3) + Number(requests, 4),
                [.. Distribution.Shares.Select(share => Distribution.At(times, share) / 1000)]);
    }

    protected override IEnumerable<string> Arguments(GeneratorOptions options, int seconds, string directory)
    {
        string data = Path.Combine(directory, "data");
        if (options.RequestContentSize > 0)
        {
            File.WriteAllBytes(data, new byte[options.RequestContentSize]);
        }

        return
        [
            .. options.RequestContentSize > 0 ? new[] { "--data", data } : [],
            "--clients", $"{options.Connections}", "--max-concurrent-streams", $"{options.Streams}",
            "--threads", $"{Math.Min(options.Threads, options.Connections)}", "--duration", $"{seconds}",
            "--log-file", Path.Combine(directory, "log"), options.Target.AbsoluteUri,
        ];
    }

    private static long Number(Match match, int group) => long.Parse(match.Groups[group].ValueSpan, CultureInfo.InvariantCulture);

    [GeneratedRegex(@"(\d+) done, (\d+) succeeded, \d+ failed, (\d+) errored, (\d+) timeout")]
    private static partial Regex Requests();

    [GeneratedRegex(@"finished in [^,]+, ([\d.]+) req/s")]
    private static partial Regex Rate();
}
