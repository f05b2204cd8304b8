using System.Diagnostics;
using System.Globalization;
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

    /// <summary>What nginx runs is compiled for good already: it is settled when it says so.</summary>
    public override int WarmUpRounds => _mode is ModeTable.Nginx or ModeTable.NginxKernel ? 1 : base.WarmUpRounds;

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
    private async Task DownloadAsync(int size, int times)
    {
        KernelCounters before = KernelCounters.Read();
        string output = await RunCurlAsync($"https://{BenchCertificates.Host}:{_server!.Port}/{size}?[1-{times}]");
        string[] answers = output.Split('\n', StringSplitOptions.RemoveEmptyEntries);
        string whole = $"200 {size}";
        if (answers.Length != times || !answers.All(answer => answer.StartsWith($"{whole} ", StringComparison.Ordinal)))
        {
            throw new BenchFailedException(
                $"{_mode}: {answers.Length} answers to {times} requests, the first that is not '{whole}' is "
                + $"'{answers.FirstOrDefault(answer => !answer.StartsWith($"{whole} ", StringComparison.Ordinal))}'");
        }

        // From curl's request to the last byte; the first one's connection and handshake are in it.
        Times?.AddRange(answers.Select(answer => TimeSpan.FromSeconds(double.Parse(answer.Split(' ')[3], CultureInfo.InvariantCulture))));
        int connections = answers.Sum(answer => int.Parse(answer.Split(' ')[2], CultureInfo.InvariantCulture));
        KernelCounters counted = KernelCounters.Read().Since(before);
        int kernelEnds = _mode is ModeTable.NginxKernel or ModeTable.Kernel ? 1 : 0;
        if (connections != 1 || counted != new KernelCounters(kernelEnds, kernelEnds))
        {
            throw new BenchFailedException(
                $"{_mode}: {connections} connections, and the kernel counts {counted} where one and {kernelEnds} of each were expected");
        }
    }

    /// <summary>It offers one cipher suite, which is then the connection's.</summary>
    private async Task<string> RunCurlAsync(string url)
    {
        using Process curl = Process.Start(new ProcessStartInfo(
            "curl",
            [
                "--silent", "--show-error", "--ipv4", "--http1.1", "--tlsv1.3", "--tls13-ciphers", Cipher,
                "--cacert", BenchCertificates.AuthorityPathIn(_files.FullName), "--output", "/dev/null",
                "--write-out", "%{http_code} %{size_download} %{num_connects} %{time_total}\n", url,
            ])
        {
            RedirectStandardOutput = true,
        })!;
        string output = await curl.StandardOutput.ReadToEndAsync();
        await curl.WaitForExitAsync();
        return curl.ExitCode == 0 ? output : throw new BenchFailedException($"curl ended with {curl.ExitCode}");
    }
}
