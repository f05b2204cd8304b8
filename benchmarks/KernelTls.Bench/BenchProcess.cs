using System.Diagnostics;
using System.Text.Json.Nodes;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench;

/// <summary>This program again, for one measurement.</summary>
internal static class BenchProcess
{
    private const string ReceiveBuffers = "/proc/sys/net/ipv4/tcp_rmem";

    /// <summary>Bytes, twice what the kernel begins with: what it lets them grow to in these rows, by their figures.</summary>
    private const string ReceiveBuffer = "262144";

    /// <summary>
    /// What .NET gives to its managed threads of normal priority where the process is scheduled so. With any other, those and the
    /// rest of the process differ, and one that yields until another has done its work yields to nobody.
    /// </summary>
    private const string MiddlePriority = "50";

    private const string NoAuthorities = "/dev/null";

    private static readonly string[] s_telemetrySwitches =
        ["System.Diagnostics.Tracing.EventSource.IsSupported", "System.Diagnostics.Metrics.Meter.IsSupported"];

    private static readonly bool s_inCell = Environment.GetEnvironmentVariable("KTLS_CELL") is not null;

    /// <summary>
    /// Real-time processes, which these are, get all of the processor. Receive buffers are of one size, and the kernel takes nothing
    /// from one connection to the next: it would let buffers grow by how long its reader took, which is not the same twice in a
    /// guest whose idle time is not counted. In a cell only: it forgets.
    /// </summary>
    public static void PrepareMachine()
    {
        if (s_inCell)
        {
            File.WriteAllText("/proc/sys/kernel/sched_rt_runtime_us", "-1");
            File.WriteAllText("/proc/sys/net/ipv4/tcp_moderate_rcvbuf", "0");
            string[] leastFirstMost = File.ReadAllText(ReceiveBuffers).Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries);
            File.WriteAllText(ReceiveBuffers, $"{leastFirstMost[0]} {ReceiveBuffer} {leastFirstMost[2]}");
            File.WriteAllText("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
        }
    }

    /// <summary>What the process printed, in surroundings that make figures repeat.</summary>
    /// <param name="arguments">Of this program.</param>
    /// <param name="cancellationToken">Ends the process, and what it has started.</param>
    /// <exception cref="BenchFailedException">It failed, and has said why; or it did not end.</exception>
    public static Task<string> RunSteadyAsync(string[] arguments, CancellationToken cancellationToken) =>
        RunAsync(DescribeSteady(arguments), string.Join(' ', arguments), Limits.Measurement, cancellationToken);

    /// <summary>As <see cref="RunSteadyAsync"/>, and perf has names for what the JIT has made.</summary>
    /// <param name="arguments">Of this program.</param>
    /// <param name="cancellationToken">Ends the process, and what it has started.</param>
    /// <exception cref="BenchFailedException">It failed, and has said why; or it did not end.</exception>
    public static Task<string> RunProfiledAsync(string[] arguments, CancellationToken cancellationToken)
    {
        ProcessStartInfo start = DescribeSteady(arguments);
        start.Environment["DOTNET_PerfMapEnabled"] = "1";
        return RunAsync(start, string.Join(' ', arguments), Limits.Measurement, cancellationToken);
    }

    /// <summary>What the process printed, in surroundings that applications have.</summary>
    /// <param name="arguments">Of this program.</param>
    /// <param name="length">How long it works on purpose.</param>
    /// <param name="cancellationToken">Ends the process, and what it has started.</param>
    /// <exception cref="BenchFailedException">It failed, and has said why; or it did not end.</exception>
    public static Task<string> RunAsync(string[] arguments, TimeSpan length, CancellationToken cancellationToken) =>
        RunAsync(DescribeChild(arguments), string.Join(' ', arguments), length + Limits.Measurement, cancellationToken);

    /// <summary>For tests: a command of any kind, with a limit of its own.</summary>
    internal static async Task<string> RunAsync(ProcessStartInfo start, string what, TimeSpan limit, CancellationToken cancellationToken)
    {
        start.RedirectStandardOutput = true;
        using Process process = Process.Start(start)!;
        using CancellationTokenSource end = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        end.CancelAfter(limit);
        try
        {
            // The process alone: what it has started may hold its output open, and is not waited for.
            Task<string> output = process.StandardOutput.ReadToEndAsync(end.Token);
            await process.WaitForExitAsync(end.Token);
            return process.ExitCode == 0
                ? await output
                : throw new BenchFailedException($"'{what}' ended with exit code {process.ExitCode}");
        }
        catch (OperationCanceledException)
        {
            string threads = ThreadStates.Describe(process.Id);
            process.Kill(entireProcessTree: true);
            cancellationToken.ThrowIfCancellationRequested();
            throw new BenchFailedException($"'{what}' did not end in {limit.TotalSeconds} s; its threads, and those of what it has started:{threads}");
        }
    }

    /// <summary>This program again, in the surroundings of the process that starts it: they are inherited.</summary>
    public static ProcessStartInfo DescribeChild(params string[] arguments) =>
        arguments.Contains(ModeTable.KernelWithoutTelemetry)
            ? DescribeWithoutTelemetry(arguments)
            : new(Environment.ProcessPath!, [typeof(BenchProcess).Assembly.Location, .. arguments]);

    /// <exception cref="BenchFailedException">This process has telemetry.</exception>
    public static void VerifyWithoutTelemetry()
    {
        if (s_telemetrySwitches.Any(name => !AppContext.TryGetSwitch(name, out bool supported) || supported))
        {
            throw new BenchFailedException($"{ModeTable.KernelWithoutTelemetry}: this process was not started without telemetry, as the table's are");
        }
    }

    /// <summary>Event sources are made before any code of ours runs: only the runtime's configuration can say that there are none.</summary>
    private static ProcessStartInfo DescribeWithoutTelemetry(string[] arguments)
    {
        string program = typeof(BenchProcess).Assembly.Location;
        JsonNode configuration = JsonNode.Parse(File.ReadAllText(Path.ChangeExtension(program, "runtimeconfig.json")))!;
        JsonNode properties = configuration["runtimeOptions"]!["configProperties"] ??= new JsonObject();
        foreach (string name in s_telemetrySwitches)
        {
            properties[name] = false;
        }

        string path = Path.Combine(Path.GetTempPath(), $"{Path.GetFileNameWithoutExtension(program)}.{ModeTable.KernelWithoutTelemetry}.runtimeconfig.json");
        File.WriteAllText(path, configuration.ToJsonString());
        return new ProcessStartInfo(
            Environment.ProcessPath!,
            ["exec", "--runtimeconfig", path, "--depsfile", Path.ChangeExtension(program, "deps.json"), program, .. arguments]);
    }

    /// <summary>
    /// A round trip would differ by a tenth and more from process to process, in every mode, by how threads hand over. First
    /// come, first served without time slices, addresses that are not random, and code that does not depend on which calls came
    /// first make it repeat. The thread pool keeps to one thread, as it starts with on one processor: it takes another where none
    /// got anywhere for half a second, which may happen while a process starts, keeps it, and each hand-over then wakes both.
    /// What is called often is compiled for good soon: the runtime first waits until nothing new is called for 100 ms, ten times
    /// as long on one processor, and a row would look settled long before. Often is a hundred times, not thirty: what the rounds
    /// call is, and what preparing calls is not. The compiler's thread stays, and its clock with it.
    /// Code that may be written where it runs is ready sooner, and is the same code. .NET would load all authorities of the machine
    /// for the first certificate, and none of them signs one here.
    /// </summary>
    private static ProcessStartInfo DescribeSteady(string[] arguments)
    {
        ProcessStartInfo dotnet = DescribeChild(arguments);
        string[] command = s_inCell
            ? ["chrt", "--fifo", MiddlePriority, "setarch", "--addr-no-randomize", dotnet.FileName, .. dotnet.ArgumentList]
            : [dotnet.FileName, .. dotnet.ArgumentList];
        return new ProcessStartInfo(command[0], command[1..])
        {
            Environment =
            {
                ["DOTNET_EnableWriteXorExecute"] = "0",
                ["DOTNET_TC_BackgroundWorkerTimeoutMs"] = "7fffffff",
                ["DOTNET_TC_CallCountThreshold"] = "64",
                ["DOTNET_TC_DelaySingleProcMultiplier"] = "1",
                ["DOTNET_ThreadPool_ForceMaxWorkerThreads"] = "1",
                ["DOTNET_TieredPGO"] = "0",
                ["SSL_CERT_DIR"] = NoAuthorities,
                ["SSL_CERT_FILE"] = NoAuthorities,
            },
        };
    }
}
