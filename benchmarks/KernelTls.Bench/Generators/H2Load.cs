using System.Globalization;
using System.Text.RegularExpressions;

namespace KernelTls.Bench.Generators;

/// <summary>Represents h2load, which speaks HTTP/2.</summary>
internal sealed partial class H2Load() : Generator("h2load")
{
    public override GeneratorReport Read(string output, string directory)
    {
        Match requests = Requests().Match(output);
        Match rate = Rate().Match(output);
        if (!requests.Success || !rate.Success || !output.Contains("Application protocol: h2", StringComparison.Ordinal))
        {
            throw new BenchFailedException($"h2load wrote no report of HTTP/2: {output}");
        }

        if (requests.Groups[1].Value != requests.Groups[2].Value)
        {
            throw new BenchFailedException($"h2load had errors: {output}");
        }

        // Start, status and duration of each request, in microseconds.
        List<TimeSpan> times =
        [
            .. File.ReadLines(LogIn(directory))
                .Select(line => TimeSpan.FromMicroseconds(long.Parse(line.AsSpan(line.LastIndexOf('\t') + 1), CultureInfo.InvariantCulture))),
        ];
        return Summarize(times, double.Parse(rate.Groups[1].ValueSpan, CultureInfo.InvariantCulture));
    }

    protected override IEnumerable<string> Arguments(GeneratorRow row, Uri target, TimeSpan length, string directory)
    {
        List<string> arguments =
        [
            "--clients", $"{row.Connections}", "--max-concurrent-streams", $"{row.Streams}", "--duration", $"{length.TotalSeconds:F0}",
            "--log-file", LogIn(directory), target.AbsoluteUri,
        ];
        if (row.UploadSize > 0)
        {
            string data = Path.Combine(directory, "data");
            File.WriteAllBytes(data, new byte[row.UploadSize]);
            arguments.InsertRange(0, ["--data", data]);
        }

        return arguments;
    }

    private static string LogIn(string directory) => Path.Combine(directory, "log");

    [GeneratedRegex(@"(\d+) done, (\d+) succeeded,")]
    private static partial Regex Requests();

    [GeneratedRegex(@"finished in [^,]+, ([\d.]+) req/s")]
    private static partial Regex Rate();
}
