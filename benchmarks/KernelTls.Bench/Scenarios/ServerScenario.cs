using System.Diagnostics;
using System.Globalization;
using System.Text;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Servers;

namespace KernelTls.Bench.Scenarios;

/// <summary>
/// curl asks a server for a file, again and again on one connection, full handshake included; the server has it, or asks another
/// one for it. The server's process alone is measured, and curl is nobody's own.
/// </summary>
internal sealed class ServerScenario : Scenario
{
    // Takes the way of every larger file, so the server's code has settled before the first of 16 MiB.
    private const int WarmUpSize = 64 * 1024;
    private const int WarmUpRequests = 120;
    private const string Cipher = "TLS_AES_256_GCM_SHA384";

    private readonly string _mode;
    private readonly int _size;
    private readonly bool _isProxy;
    private readonly ServedFiles _files;
    private ServerProcess? _upstream;
    private ServerProcess? _server;

    public ServerScenario(string mode, int size, bool isProxy, int operationsPerRound)
    {
        _isProxy = isProxy;
        _mode = mode;
        _size = size;
        _files = new ServedFiles(WarmUpSize, size);
        OperationsPerRound = operationsPerRound;
    }

    public override int OperationsPerRound { get; }

    /// <summary>What nginx runs is compiled for good already, and what Kestrel runs is after the requests that warm up.</summary>
    public override int WarmUpRounds => 1;

    public override int MeasuredProcess => _server!.ProcessId;

    public override async Task PrepareAsync()
    {
        _upstream = _isProxy ? await ServerProcess.StartUpstreamAsync(_files) : null;
        _server = await ServerProcess.StartAsync(_mode, _files, _upstream);
        await DownloadAsync(WarmUpSize, WarmUpRequests);
    }

    public override Task RunAsync(int operations) => DownloadAsync(_size, operations);

    public override ValueTask DisposeAsync()
    {
        _server?.Dispose();
        _upstream?.Dispose();
        _files.Dispose();
        return ValueTask.CompletedTask;
    }

    /// <summary>Throws unless all files came whole, on one connection, and in this mode by the kernel's count.</summary>
    private async Task DownloadAsync(int size, int requests)
    {
        KernelCounters before = KernelCounters.Read();
        string output = await RunCurlAsync($"https://{BenchCertificates.Host}:{_server!.Port}/{size}?[1-{requests}]");
        if (Times is { } times)
        {
            output = TakeTimes(output, times);
        }

        // Code, size, and how many connections curl made for it. Compared as a whole: what this process does is not measured, and
        // code for each line would be compiled for good.
        string first = $"200 {size} 1\n";
        string next = $"200 {size} 0\n";
        if (output != first + string.Concat(Enumerable.Repeat(next, requests - 1)))
        {
            string[] answers = output.Split('\n', StringSplitOptions.RemoveEmptyEntries);
            string wrong = answers.Where((answer, i) => answer != (i == 0 ? first : next).TrimEnd()).FirstOrDefault("");
            throw new BenchFailedException(
                $"{_mode}: {answers.Length} answers to {requests} requests; '{first.TrimEnd()}' and then '{next.TrimEnd()}' were expected, not '{wrong}'");
        }

        KernelCounters counted = KernelCounters.Read().Since(before);
        int kernelEnds = _mode is ModeTable.NginxKernel or ModeTable.Kernel ? 1 : 0;
        if (counted != new KernelCounters(kernelEnds, kernelEnds))
        {
            throw new BenchFailedException($"{_mode}: the kernel counts {counted} where {kernelEnds} of each were expected");
        }
    }

    /// <summary>From curl's request to the last byte; the first one's connection and handshake are in it. Returns what is before each.</summary>
    private static string TakeTimes(string output, List<TimeSpan> times)
    {
        StringBuilder answers = new();
        foreach (string line in output.Split('\n', StringSplitOptions.RemoveEmptyEntries))
        {
            int end = line.LastIndexOf(' ');
            times.Add(TimeSpan.FromSeconds(double.Parse(line.AsSpan(end + 1), CultureInfo.InvariantCulture)));
            answers.Append(line, 0, end).Append('\n');
        }

        return answers.ToString();
    }

    /// <summary>It offers one cipher suite, which is then the connection's.</summary>
    private async Task<string> RunCurlAsync(string url)
    {
        using Process curl = Process.Start(new ProcessStartInfo(
            "curl",
            [
                "--silent", "--show-error", "--ipv4", "--http1.1", "--tlsv1.3", "--tls13-ciphers", Cipher,
                "--cacert", BenchCertificates.AuthorityPathIn(_files.FullName), "--output", "/dev/null",
                "--write-out", $"%{{http_code}} %{{size_download}} %{{num_connects}}{(Times is null ? "" : " %{time_total}")}\n", url,
            ])
        {
            RedirectStandardOutput = true,
        })!;
        string output = await curl.StandardOutput.ReadToEndAsync();
        await curl.WaitForExitAsync();
        return curl.ExitCode == 0 ? output : throw new BenchFailedException($"curl ended with {curl.ExitCode}");
    }
}
