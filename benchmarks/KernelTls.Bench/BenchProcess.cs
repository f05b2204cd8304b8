using System.Diagnostics;
using System.Text.Json.Nodes;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench;

/// <summary>Starts this program as a child process for one measurement.</summary>
internal static class BenchProcess
{
    private const string ReceiveBuffers = "/proc/sys/net/ipv4/tcp_rmem";

    /// <summary>
    /// The size of a receive buffer in bytes. It is twice the kernel's initial size. The figures show that the kernel
    /// lets buffers grow to this size in these rows.
    /// </summary>
    private const string ReceiveBuffer = "262144";

    /// <summary>
    /// The real-time priority that .NET assigns to managed threads of normal priority if the process has a real-time
    /// policy. With any other priority, managed threads and the other threads of the process would differ. A thread
    /// that yields until another thread has done its work would then yield to no other thread.
    /// </summary>
    private const string MiddlePriority = "50";

    private const string NoAuthorities = "/dev/null";

    private static readonly string[] s_telemetrySwitches =
        ["System.Diagnostics.Tracing.EventSource.IsSupported", "System.Diagnostics.Metrics.Meter.IsSupported"];

    private static readonly bool s_inCell = Environment.GetEnvironmentVariable("KTLS_CELL") is not null;

    /// <summary>
    /// Prepares a lab cell for real-time processes and gives all receive buffers the same size. Measurements run as
    /// real-time processes, which may use all processor time. The kernel also keeps no metrics of a connection for the
    /// next one. By default, the kernel grows a receive buffer according to the time that its reader takes. That time
    /// does not repeat in a guest whose idle time is not counted. This method changes kernel settings only in a cell,
    /// because a cell does not keep them.
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

    /// <summary>Runs a measurement under conditions that make figures repeatable and returns its output.</summary>
    /// <param name="arguments">The arguments for this program.</param>
    /// <param name="cancellationToken">A token that ends the process and all processes that it started.</param>
    /// <exception cref="BenchFailedException">The process failed and wrote the reason, or it did not end.</exception>
    public static Task<string> RunSteadyAsync(string[] arguments, CancellationToken cancellationToken) =>
        RunAsync(DescribeSteady(arguments), string.Join(' ', arguments), Limits.Measurement, cancellationToken);

    /// <summary>
    /// Runs a measurement as <see cref="RunSteadyAsync"/> does and provides perf with the names of methods that the JIT
    /// compiled.
    /// </summary>
    /// <param name="arguments">The arguments for this program.</param>
    /// <param name="cancellationToken">A token that ends the process and all processes that it started.</param>
    /// <exception cref="BenchFailedException">The process failed and wrote the reason, or it did not end.</exception>
    public static Task<string> RunProfiledAsync(string[] arguments, CancellationToken cancellationToken)
    {
        ProcessStartInfo start = DescribeSteady(arguments);
        start.Environment["DOTNET_PerfMapEnabled"] = "1";
        return RunAsync(start, string.Join(' ', arguments), Limits.Measurement, cancellationToken);
    }

    /// <summary>Runs a measurement under the conditions of an ordinary application and returns its output.</summary>
    /// <param name="arguments">The arguments for this program.</param>
    /// <param name="length">The intended duration of the work.</param>
    /// <param name="cancellationToken">A token that ends the process and all processes that it started.</param>
    /// <exception cref="BenchFailedException">The process failed and wrote the reason, or it did not end.</exception>
    public static Task<string> RunAsync(string[] arguments, TimeSpan length, CancellationToken cancellationToken) =>
        RunAsync(DescribeChild(arguments), string.Join(' ', arguments), length + Limits.Measurement, cancellationToken);

    /// <summary>Runs any command with the given limit. Tests call this method directly.</summary>
    internal static async Task<string> RunAsync(ProcessStartInfo start, string what, TimeSpan limit, CancellationToken cancellationToken)
    {
        start.RedirectStandardOutput = true;
        using Process process = Process.Start(start)!;
        using CancellationTokenSource end = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        end.CancelAfter(limit);
        try
        {
            // Wait for this process alone. Processes that it started may still hold its output open.
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

    /// <summary>
    /// Describes a child process that runs this program and inherits the environment of the current process.
    /// </summary>
    public static ProcessStartInfo DescribeChild(params string[] arguments)
    {
        string program = typeof(BenchProcess).Assembly.Location;
        bool isLibrary = arguments is [_, var row, ..] && Row.All.Any(other => other.Name == row && other.IsLibrary);
        string[] host =
            arguments.Contains(ModeTable.KernelWithoutTelemetry)
                ? ConfiguredHost(program, ModeTable.KernelWithoutTelemetry, s_telemetrySwitches, false)
            : isLibrary && arguments.Contains(ModeTable.KernelWithoutPadding)
                ? ConfiguredHost(program, ModeTable.KernelWithoutPadding, [LibraryProcess.NoPaddingNames], "All")
            : arguments.Contains(ModeTable.Unwoven) ? ["exec", "--depsfile", LibraryProcess.OriginalDependencies]
            : [];
        ProcessStartInfo start = new(Environment.ProcessPath!, [.. host, program, .. arguments]);
        if (isLibrary)
        {
            LibraryProcess.SetSwitches(start, arguments[2]);
        }

        return start;
    }

    /// <exception cref="BenchFailedException">This process has telemetry.</exception>
    public static void VerifyWithoutTelemetry()
    {
        if (s_telemetrySwitches.Any(name => !AppContext.TryGetSwitch(name, out bool supported) || supported))
        {
            throw new BenchFailedException($"{ModeTable.KernelWithoutTelemetry}: this process was not started without telemetry, as the table's are");
        }
    }

    /// <summary>
    /// Writes the configuration of a runtime for a mode and returns the arguments that make the host use it. Event sources are
    /// created before any code of this program runs, so only the runtime's configuration can disable them.
    /// </summary>
    private static string[] ConfiguredHost(string program, string mode, string[] names, JsonNode value)
    {
        JsonNode configuration = JsonNode.Parse(File.ReadAllText(Path.ChangeExtension(program, "runtimeconfig.json")))!;
        JsonNode properties = configuration["runtimeOptions"]!["configProperties"] ??= new JsonObject();
        foreach (string name in names)
        {
            properties[name] = value.DeepClone();
        }

        string path = Path.Combine(Path.GetTempPath(), $"{Path.GetFileNameWithoutExtension(program)}.{mode}.runtimeconfig.json");
        File.WriteAllText(path, configuration.ToJsonString());
        return ["exec", "--runtimeconfig", path, "--depsfile", Path.ChangeExtension(program, "deps.json")];
    }

    /// <summary>Describes a child process whose figures are repeatable.</summary>
    /// <remarks>
    /// <para>
    /// Without these settings, the cost of a round trip differs between processes by a tenth or more in every mode. The
    /// reason is the way in which threads hand over work. Three settings make it repeatable: first-come, first-served
    /// scheduling without time slices; addresses that are not random; and compiled code that does not depend on the
    /// order of the first calls.
    /// </para>
    /// <para>
    /// The thread pool keeps one thread, with which it starts on one processor. Otherwise, it adds a thread when no
    /// thread makes progress for half a second, which can happen while a process starts. It then keeps that thread, and
    /// each handover wakes both.
    /// </para>
    /// <para>
    /// The runtime compiles frequently called methods with full optimization soon. By default, it first waits until no
    /// new method is called for 100 ms, or for ten times as long on one processor. A row would look settled long before
    /// that. A method counts as frequently called after a hundred calls instead of thirty. The rounds reach that
    /// number, and the preparation does not. The compiler's thread does not end, so its clock can always be read.
    /// </para>
    /// <para>
    /// The same code is ready sooner if the runtime may write it at the address at which it runs. For the first
    /// certificate, .NET would otherwise load all authorities of the machine, none of which signs a certificate here.
    /// </para>
    /// <para>
    /// A row of first operations includes the time of compilation, so its processes keep the compiler's default settings.
    /// </para>
    /// </remarks>
    internal static ProcessStartInfo DescribeSteady(string[] arguments)
    {
        ProcessStartInfo start = DescribeChild(arguments);
        if (s_inCell)
        {
            string[] command = ["--fifo", MiddlePriority, "setarch", "--addr-no-randomize", start.FileName];
            start.FileName = "chrt";
            foreach (string argument in command.Reverse())
            {
                start.ArgumentList.Insert(0, argument);
            }
        }

        start.Environment["DOTNET_TC_DelaySingleProcMultiplier"] = "1";
        start.Environment["DOTNET_ThreadPool_ForceMaxWorkerThreads"] = "1";
        start.Environment["SSL_CERT_DIR"] = NoAuthorities;
        start.Environment["SSL_CERT_FILE"] = NoAuthorities;
        if (!IsStart(arguments))
        {
            start.Environment["DOTNET_EnableWriteXorExecute"] = "0";
            start.Environment["DOTNET_TC_BackgroundWorkerTimeoutMs"] = "7fffffff";
            start.Environment["DOTNET_TC_CallCountThreshold"] = "64";
            start.Environment["DOTNET_TieredPGO"] = "0";
        }

        return start;
    }

    private static bool IsStart(string[] arguments) => arguments is [BenchCommand.Measure, var row, ..] && Row.Find(row).IsStart;
}
