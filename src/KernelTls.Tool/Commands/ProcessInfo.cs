using KernelTls.Tool.Output;
using KernelTls.Tool.Watching;
using Spectre.Console;

namespace KernelTls.Tool.Commands;

/// <summary>Implements <c>ktls info --process</c>: what of a living process uses kernel TLS, what does not, and why.</summary>
internal static class ProcessInfo
{
    private const string Library = "KernelTls.dll";
    private const string Hook = "KernelTls.StartupHook.dll";
    private static readonly TimeSpan s_answerTime = TimeSpan.FromSeconds(3);

    /// <summary>Shows the status that the process tells. Returns the exit code.</summary>
    /// <exception cref="ToolFailedException">The process cannot be watched.</exception>
    public static async Task<int> ShowAsync(int processId, Terminal terminal, CancellationToken cancellationToken)
    {
        await using ProcessWatch watch = await ProcessWatch.StartAsync(processId, TimeSpan.FromSeconds(1), cancellationToken);
        await Task.WhenAny(watch.Events.HasStatus, watch.Ended, Task.Delay(s_answerTime, cancellationToken));
        cancellationToken.ThrowIfCancellationRequested();

        IReadOnlyList<ProcessEvents.StatusLine> status = watch.Events.Take().Status;
        bool uses = status.Any(UsesKernel);
        string verdict = uses ? "yes: the kernel has connections or endpoints of it"
            : status.Count == 0 ? $"no: {Silence(processId)}"
            : "no: nothing of it is in the kernel so far";
        if (terminal.IsJson)
        {
            terminal.Document(new { processId, verdict, status });
        }
        else
        {
            terminal.Headline($"Process {processId}: {verdict}", new Style(uses ? Color.Green : Color.Red, decoration: Decoration.Bold));
            foreach (ProcessEvents.StatusLine line in status)
            {
                terminal.Line($"{line.What,-12}{line}");
            }
        }

        return uses ? ExitCode.Ok : ExitCode.No;
    }

    private static bool UsesKernel(ProcessEvents.StatusLine line) => line.What switch
    {
        "endpoint" => line.State == "kernel TLS",
        "connections" => line.State.Contains("=kernel", StringComparison.Ordinal),
        _ => false,
    };

    /// <summary>Returns why a process has told nothing.</summary>
    private static string Silence(int processId)
    {
        try
        {
            string[] mapped = [.. File.ReadLines($"/proc/{processId}/maps")];
            return IsMapped(mapped, Library)
                ? "it has loaded KernelTls, but tells no status: no switch is set and nothing of the library was used so far, or EventSourceSupport is false"
                : IsMapped(mapped, Hook)
                ? "its start-up hook has not loaded the library: the process has used no TLS so far, no switch is set, or the hook has given the reason on the standard error"
                : $"it has not loaded {Library}. Its TLS is SslStream: add a package, or set a switch (DOTNET_SYSTEM_NET_SECURITY_KTLS=1) and restart it";
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return "it tells no status";
        }
    }

    private static bool IsMapped(IEnumerable<string> mapped, string file) => mapped.Any(line => line.EndsWith("/" + file, StringComparison.Ordinal));
}
