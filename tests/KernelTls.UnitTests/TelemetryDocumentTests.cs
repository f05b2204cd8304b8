using System.Collections.Concurrent;
using System.Diagnostics.Metrics;
using System.Diagnostics.Tracing;
using System.Reflection;
using System.Runtime.CompilerServices;
using KernelTls.Diagnostics;

namespace KernelTls.UnitTests;

/// <summary>Tests that docs/telemetry.md contains the names for dashboards exactly as in the code.</summary>
[Collection(nameof(EventSourceTests))]
public class TelemetryDocumentTests
{
    private static readonly string[] s_lines = File.ReadAllLines(Path.Combine(AppContext.BaseDirectory, "telemetry.md"));

    /// <summary>Gets the counters of the event source in the document.</summary>
    internal static IEnumerable<string> Counters { get; } =
        from name in Assert.Single(s_lines, l => l.StartsWith("Its counters: ", StringComparison.Ordinal)).Split('`').Where((_, i) => i % 2 == 1)
        select name;

    [Fact]
    public void Instruments()
    {
        // Other tests load copies of the library, whose meters have the same name.
        ConcurrentDictionary<string, bool> expected = [];
        using MeterListener listener = new()
        {
            InstrumentPublished = (instrument, _) =>
            {
                if (instrument.Meter.Name == KtlsMeter.Name)
                {
                    expected[$"| `{instrument.Name}` | {KindOf(instrument)}, {instrument.Unit} |"] = true;
                }
            },
        };
        RuntimeHelpers.RunClassConstructor(typeof(KtlsMeter).TypeHandle);
        listener.Start();

        AssertRows("## Meter `KernelTls`", expected.Keys);
    }

    [Fact]
    public void Events() => AssertRows(
        "## Event source `KernelTls`",
        from method in typeof(KtlsEventSource.KernelTls).GetMethods(BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic)
        let e = method.GetCustomAttribute<EventAttribute>()
        where e is not null
#pragma warning disable CA1308 // The document uses lower case.
        select $"| `{method.Name}` | {e.Level.ToString().ToLowerInvariant()} | {string.Join(", ", method.GetParameters().Select(p => p.Name))}");
#pragma warning restore CA1308

    /// <summary>
    /// Asserts that each row of the section begins with an expected name, and that each expected name has a row.
    /// </summary>
    private static void AssertRows(string section, IEnumerable<string> expected)
    {
        string[] rows =
        [
            .. s_lines.SkipWhile(l => l != section).Skip(1).TakeWhile(l => !l.StartsWith("## ", StringComparison.Ordinal))
                .Where(l => l.StartsWith("| `", StringComparison.Ordinal)),
        ];

        Assert.NotEmpty(rows);
        Assert.Equal(
            expected.Order(StringComparer.Ordinal),
            rows.Select(r => expected.FirstOrDefault(e => r.StartsWith(e, StringComparison.Ordinal), r)).Order(StringComparer.Ordinal));
    }

    private static string KindOf(Instrument instrument) => instrument switch
    {
        Histogram<double> => "histogram",
        UpDownCounter<long> => "up-down counter",
        Counter<long> => "counter",
        _ => instrument.GetType().Name,
    };
}
