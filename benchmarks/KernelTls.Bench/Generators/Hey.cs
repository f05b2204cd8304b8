using System.Globalization;

namespace KernelTls.Bench.Generators;

/// <summary>Represents hey, which is written in Go and has Go's TLS. It speaks HTTP/1.1.</summary>
internal sealed class Hey() : Generator("hey")
{
    public override GeneratorReport Read(string output, string directory)
    {
        // One line for each request: its duration is the first column, the status the seventh, and its start the last, in seconds.
        string[][] lines = [.. output.Split('\n', StringSplitOptions.RemoveEmptyEntries).Skip(1).Select(line => line.Split(','))];
        string[]? wrong = lines.FirstOrDefault(line => line.Length != 8 || line[6] != "200");
        if (lines.Length == 0 || wrong is not null)
        {
            throw new BenchFailedException($"hey had an error: {(wrong is null ? output : string.Join(',', wrong))}");
        }

        TimeSpan end = lines.Max(line => SecondsOf(line[7]) + SecondsOf(line[0]));
        TimeSpan begin = lines.Min(line => SecondsOf(line[7]));
        return Summarize([.. lines.Select(line => SecondsOf(line[0]))], lines.Length / (end - begin).TotalSeconds);
    }

    protected override IEnumerable<string> Arguments(GeneratorRow row, Uri target, TimeSpan length, string directory)
    {
        List<string> arguments = ["-z", $"{length.TotalSeconds:F0}s", "-c", $"{row.Connections}", "-o", "csv"];
        if (row.Closes)
        {
            arguments.Add("-disable-keepalive");
        }

        if (row.UploadSize > 0)
        {
            string data = Path.Combine(directory, "data");
            File.WriteAllBytes(data, new byte[row.UploadSize]);
            arguments.AddRange(["-m", "POST", "-D", data]);
        }

        return [.. arguments, target.AbsoluteUri];
    }

    private static TimeSpan SecondsOf(string word) => TimeSpan.FromSeconds(double.Parse(word, CultureInfo.InvariantCulture));
}
