using System.Diagnostics;
using System.Runtime.InteropServices;

namespace KernelTls.Bench;

/// <summary>
/// Profiles a process with perf, which samples by processor time. In a guest whose nanosecond is one instruction, the
/// profile counts instructions.
/// </summary>
internal sealed partial class Profiler : IDisposable
{
    private const int OwnerOnly = 0x180;

    // The maximum size of each report. The entries below it add nothing that the entries above do not show.
    private const int MostLines = 40;
    private const int MostColumns = 140;
    private const double LeastPercent = 0.4;

    private readonly int _processId;
    private readonly DirectoryInfo _directory = Directory.CreateTempSubdirectory("kerneltls-bench-");
    private readonly string _data;
    private readonly string _control;
    private readonly string _answer;

    private Profiler(int processId)
    {
        _processId = processId;
        _data = Path.Combine(_directory.FullName, "perf.data");
        _control = Path.Combine(_directory.FullName, "control");
        _answer = Path.Combine(_directory.FullName, "answer");
        if (mkfifo(_control, OwnerOnly) != 0 || mkfifo(_answer, OwnerOnly) != 0)
        {
            throw new BenchFailedException("no pipes for perf");
        }
    }

    /// <summary>
    /// Samples the whole machine while <paramref name="work"/> runs and prints the part of the process.
    /// </summary>
    public static async Task ProfileAsync(int processId, Func<Task> work)
    {
        using Profiler profiler = new(processId);

        // The frequencies are prime, so that they do not synchronize with periodic work.
        await profiler.RecordAsync(work, "cpu-clock", "-F", "9973");
        await profiler.ReportAsync("by image", called: false, "dso");
        await profiler.ReportAsync("by function", called: false, "dso", "symbol");

        // The kernel can unwind its stacks.
        await profiler.RecordAsync(work, "cpu-clock:k", "-F", "9973", "-g");
        await profiler.ReportAsync("of the kernel's part, by function, with all that it calls", called: true, "symbol");

        // Unwind stacks with unwind tables, because Debian's libraries have no frame pointers. That is slow, so there
        // are fewer samples.
        await profiler.RecordAsync(work, "cpu-clock", "-F", "499", "--call-graph", "dwarf,16384", "-m", "8M");
        await profiler.ReportAsync("by function, with all that it calls", called: true, "symbol");
    }

    public void Dispose() => _directory.Delete(recursive: true);

    private async Task RecordAsync(Func<Task> work, string clock, params string[] sampling)
    {
        using Process perf = Process.Start(Describe(
            ["record", "-q", "-a", "-e", clock, .. sampling, "-D", "-1", "--control", $"fifo:{_control},{_answer}", "-o", _data]))!;

        // Open the pipe for both directions, so that opening it does not block.
        await using FileStream control = new(_control, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite, bufferSize: 0);
        await using FileStream answer = new(_answer, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite, bufferSize: 0);
        using StreamReader answers = new(answer);
        await CommandAsync(control, answers, "enable");
        await work();
        await CommandAsync(control, answers, "disable");
        await CommandAsync(control, answers, "stop");
        await perf.WaitForExitAsync().InTime("perf to write its samples");
    }

    private static async Task CommandAsync(FileStream control, StreamReader answers, string command)
    {
        await control.WriteAsync(System.Text.Encoding.ASCII.GetBytes($"{command}\n"));
        _ = await answers.ReadLineAsync().InTime($"perf to answer '{command}'");
    }

    private async Task ReportAsync(string title, bool called, params string[] keys)
    {
        Console.Out.WriteLine($"== {title}");
        ProcessStartInfo start = Describe(
        [
            "report", "-i", _data, "--stdio", "-q", "--percentage", "relative", "--pid", $"{_processId}", "--no-inline",
            "--field-separator", PerfReport.Separator, .. called ? ["--children", "-g", "none"] : (string[])[],
            "--sort", string.Join(',', ["pid", .. keys]),
        ]);
        start.RedirectStandardOutput = true;
        using Process perf = Process.Start(start)!;
        string report = await perf.StandardOutput.ReadToEndAsync().InTime("perf's report");
        await perf.WaitForExitAsync().InTime("perf to end");
        foreach (string line in PerfReport.OfAllThreads(report, called ? 2 : 1, keys.Length, LeastPercent).Take(MostLines))
        {
            Console.Out.WriteLine(line.Length <= MostColumns ? line : $"{line[..MostColumns]}…");
        }
    }

    private static ProcessStartInfo Describe(params string[] arguments) => new("perf", arguments);

    [LibraryImport("libc", StringMarshalling = StringMarshalling.Utf8)]
    private static partial int mkfifo(string path, int mode);
}
