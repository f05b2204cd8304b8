using System.Diagnostics;
using System.Globalization;
using System.Text;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Servers;

namespace KernelTls.Bench.Scenarios;

/// <summary>
/// Requests a file from a server with curl, repeatedly on one connection, including a full handshake. The server serves
/// the file or, as a reverse proxy, requests it from another server. Only the server's process is measured. The client
/// is curl, which belongs to none of the compared implementations.
/// </summary>
internal sealed class ServerScenario : Scenario
{
    // Files of this size and all larger files take the same path, so the server's code settles before the first file of
    // 16 MiB.
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

    /// <summary>
    /// Gets a single warm-up round. The code of nginx is already compiled, and the warm-up requests let the runtime
    /// finish compiling the code of Kestrel.
    /// </summary>
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

    /// <summary>
    /// Downloads files and throws unless all files arrived completely, on one connection, and the kernel's counters
    /// match this mode.
    /// </summary>
    private async Task DownloadAsync(int size, int requests)
    {
        KernelSockets before = KernelSockets.Read();
        string output = await RunCurlAsync($"https://{BenchCertificates.Host}:{_server!.Port}/{size}?[1-{requests}]");
        if (Times is { } times)
        {
            output = TakeTimes(output, times);
        }

        // A line contains the status code, the size and the number of connections that curl opened for it. Compare the
        // output as a whole. This process is not measured, but the runtime would compile code that runs for each line.
        string first = $"200 {size} 1\n";
        string next = $"200 {size} 0\n";
        if (output != first + string.Concat(Enumerable.Repeat(next, requests - 1)))
        {
            string[] answers = output.Split('\n', StringSplitOptions.RemoveEmptyEntries);
            string wrong = answers.Where((answer, i) => answer != (i == 0 ? first : next).TrimEnd()).FirstOrDefault("");
            throw new BenchFailedException(
                $"{_mode}: {answers.Length} answers to {requests} requests; '{first.TrimEnd()}' and then '{next.TrimEnd()}' were expected, not '{wrong}'");
        }

        KernelSockets.Read().Since(before).Expect(_mode, _mode is ModeTable.NginxKernel or ModeTable.Kernel ? 1 : 0);
    }

    /// <summary>
    /// Takes the time of each request, from the request to the last byte, and returns the rest of each line. The time
    /// of the first request includes the connection and the handshake.
    /// </summary>
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

    /// <summary>Runs curl, which offers one cipher suite. The connection therefore uses that cipher suite.</summary>
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
