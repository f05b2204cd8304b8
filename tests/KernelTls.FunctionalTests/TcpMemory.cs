using System.Diagnostics;
using System.Globalization;

namespace KernelTls.FunctionalTests;

/// <summary>Limits the memory of all TCP sockets of the machine for the time of a test (tcp(7), tcp_mem), in pages.</summary>
internal sealed class TcpMemory : IDisposable
{
    /// <summary>
    /// Beyond this number no socket gets more memory. Each processor keeps up to 256 pages for its next sockets, which count as used.
    /// </summary>
    public static readonly int Most = 144 + (256 * Environment.ProcessorCount);

    private const string Limits = "/proc/sys/net/ipv4/tcp_mem";

    private readonly string _before = InFirstNamespace($"cat {Limits}");

    public TcpMemory() => Set($"{Most - 100} {Most - 50} {Most}");

    /// <summary>Gets the number of pages that the sockets use now: the last word of the line TCP in /proc/net/sockstat.</summary>
    public static int Used => int.Parse(
        File.ReadLines("/proc/net/sockstat").First(l => l.StartsWith("TCP:", StringComparison.Ordinal)).Split(' ')[^1], CultureInfo.InvariantCulture);

    public void Dispose() => Set(_before);

    private static void Set(string pages) => InFirstNamespace($"echo {pages} > {Limits}");

    /// <summary>Runs a command in the network namespace of the first process: other namespaces do not show this limit, but it applies to them.</summary>
    private static string InFirstNamespace(string command)
    {
        ProcessStartInfo start = new("nsenter", ["--net=/proc/1/ns/net", "sh", "-c", command]) { RedirectStandardOutput = true };
        using Process process = Process.Start(start)!;
        string said = process.StandardOutput.ReadToEnd().Trim();
        process.WaitForExit();
        Assert.True(process.ExitCode == 0, $"{command}: exit code {process.ExitCode}");
        return said;
    }
}
