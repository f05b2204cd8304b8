using System.Globalization;
using System.Runtime.InteropServices;
using System.Security.Cryptography;
using System.Text.Json.Nodes;
using Spectre.Console;

namespace KernelTls.LoadTest.Report;

/// <summary>
/// Collects and reports the results of a run. An agent would add up results that it receives twice, so each result is
/// reported once. If an agent listens, the results are sent as events. Otherwise, they are written to standard output
/// as the text that an agent would read, or as a table if the output is a terminal.
/// </summary>
internal sealed class Results
{
    public const string Start = "#StartJobStatistics";
    public const string End = "#EndJobStatistics";

    private readonly List<(Metric Metric, object Value)> _values = [];

    public void Add(Metric metric, long value) => _values.Add((metric, value));

    public void Add(Metric metric, double value) => _values.Add((metric, value));

    public void Add(Metric metric, string value) => _values.Add((metric, value));

    /// <summary>Returns the value of a measurement that was added, for tests.</summary>
    internal object ValueOf(Metric metric) => _values.Single(value => value.Metric == metric).Value;

    /// <summary>Adds the properties of the environment, without which the figures are meaningless.</summary>
    public void AddEnvironment()
    {
        Add(Metrics.ProcessorCount, (long)Environment.ProcessorCount);
        Add(Metrics.Kernel, KtlsPlatform.KernelRelease);
        Add(Metrics.OpenSsl, DescribeOpenSsl());
        Add(Metrics.Runtime, RuntimeInformation.FrameworkDescription);
    }

    /// <returns><see langword="true"/> if a listener received the results.</returns>
    public bool TellListener()
    {
        if (!BenchmarksEventSource.Log.IsEnabled())
        {
            return false;
        }

        foreach ((Metric metric, object value) in _values)
        {
            BenchmarksEventSource.Log.Measure(metric, value);
        }

        return true;
    }

    public void Tell()
    {
        bool heard = TellListener();
        if (!Console.IsOutputRedirected)
        {
            AnsiConsole.Write(ToTable());
        }
        else if (!heard)
        {
            Console.Out.WriteLine($"{Start}\n{ToJson().ToJsonString()}\n{End}");
        }
    }

    /// <summary>
    /// Returns OpenSSL's version from .NET. KtlsPlatform also has it, but it would probe the kernel in a process that
    /// must remain a stock process.
    /// </summary>
    private static string DescribeOpenSsl()
    {
        if (!OperatingSystem.IsLinux())
        {
            return "";
        }

        // The format of OPENSSL_VERSION_NUMBER since OpenSSL 3.0 is 0xMNN00PP0.
        long version = SafeEvpPKeyHandle.OpenSslVersion;
        return $"{version >> 28}.{(version >> 20) & 0xFF}.{(version >> 4) & 0xFF}";
    }

    private JsonObject ToJson() => new()
    {
        ["Metadata"] = new JsonArray([.. _values.Select(v => new JsonObject
        {
            ["Source"] = "Benchmark",
            ["Name"] = v.Metric.Name,
            ["Aggregate"] = $"{v.Metric.Aggregate}",
            ["Reduce"] = $"{v.Metric.Reduce}",
            ["Format"] = v.Metric.Format,
            ["ShortDescription"] = v.Metric.ShortDescription,
            ["LongDescription"] = v.Metric.LongDescription,
        })]),
        ["Measurements"] = new JsonArray([.. _values.Select(v => new JsonObject
        {
            ["Name"] = v.Metric.Name,
            ["Timestamp"] = DateTime.UtcNow,
            ["Value"] = v.Value switch { long number => number, double number => number, object text => (string)text },
        })]),
    };

    private Table ToTable()
    {
        Table table = new Table().Border(TableBorder.Rounded).AddColumn("").AddColumn(new TableColumn("").RightAligned()).HideHeaders();
        foreach ((Metric metric, object value) in _values)
        {
            string text = value is IFormattable number ? number.ToString(metric.Format, CultureInfo.InvariantCulture) : (string)value;
            table.AddRow(Markup.Escape(metric.ShortDescription), Markup.Escape(text));
        }

        return table;
    }
}
