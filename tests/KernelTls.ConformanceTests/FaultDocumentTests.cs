using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests that docs/differences.md lists the accepted differences of the tests.</summary>
public class FaultDocumentTests
{
    [Fact]
    public void The_accepted_differences_are_documented() =>
        GeneratedTable.Check("docs/differences.md", typeof(FaultDocumentTests), "tests/Shared/Faults/FaultDifferences.cs", Render());

    [Fact]
    public void Each_accepted_difference_names_faults_that_exist_and_a_section_of_an_RFC()
    {
        Check(FaultDifferences.Streams, RecordFaults.All.Select(f => f.Name));
        Check(FaultDifferences.Kestrel, RecordFaults.All.Select(f => f.Name));
        Check(FaultDifferences.Handshakes, HandshakeFaults.All.Select(f => f.Name));
        Assert.Equal(RecordFaults.All.Count, RecordFaults.All.DistinctBy(f => f.Name).Count());
        Assert.Equal(HandshakeFaults.All.Count, HandshakeFaults.All.DistinctBy(f => f.Name).Count());

        static void Check(IEnumerable<FaultDifference> differences, IEnumerable<string> names)
        {
            string[] all = [.. names];
            foreach (FaultDifference difference in differences)
            {
                Assert.Matches(@"^RFC \d+, [\dD]", difference.Why);
                Assert.All(difference.Faults, fault => Assert.Contains(all, (difference with { Faults = [fault] }).Covers));
            }
        }
    }

    private static string Render()
    {
        StringBuilder table = new();
        foreach ((string title, string stock, IReadOnlyList<FaultDifference> differences) in new[]
        {
            ("in a handshake", "SslStream", FaultDifferences.Handshakes),
            ("later", "SslStream, or OpenSSL's alert", FaultDifferences.Streams),
            ("during a send, as HTTP/2 sends while it reads", "OpenSSL's alert", FaultDifferences.DuringSends),
            ("in the body of a request", "Kestrel", [.. FaultDifferences.Kestrel.Except(FaultDifferences.Http).Where(d => d.MayBeAbsent is null)]),
        })
        {
            table.Append($"\n| what the peer does, {title} | where | {stock} | KtlsStream | why |\n|---|---|---|---|---|\n");
            foreach (FaultDifference each in differences)
            {
                string faults = string.Join("; ", each.Faults.Select(f => f == "*" ? "any" : f.Replace("*", "\u2026", StringComparison.Ordinal)));
                table.Append($"| {faults} | {Where(each)} | {What(each, each.Stock)} | {What(each, each.Actual)} | {each.Why} |\n");
            }
        }

        return $"{table}\n";
    }

    private static string Where(FaultDifference each)
    {
        string[] parts =
        [
            each.IsKernelOnly ? "kernel" : "OpenSSL and kernel",
            each.Only switch { SslProtocols.Tls12 => "TLS 1.2", SslProtocols.Tls13 => "TLS 1.3", _ => "" },
            each.When.Text,
        ];
        return string.Join(", ", parts.Where(p => p.Length > 0));
    }

    private static string What(FaultDifference each, string? value) => (each.Field, value) switch
    {
        (FaultField.Alert, null) => "an alert, or none",
        (_, null) => "goes on, or ends as its kind does",
        (FaultField.Alert, "") => "no alert",
        (FaultField.Alert, _) => $"alert {value}",
        (FaultField.Write, FaultOutcome.Works) => "a write works",
        (FaultField.Write, _) => $"{value} of the next write",
        _ => value,
    };
}
