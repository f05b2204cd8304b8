using System.Diagnostics.Tracing;
using KernelTls.Diagnostics;
using Microsoft.Diagnostics.NETCore.Client;
using Microsoft.Diagnostics.Tracing;

namespace KernelTls.Tool.Watching;

/// <summary>
/// Listens to the event source <c>KernelTls</c> of another .NET process by EventPipe. Does not change that process.
/// </summary>
internal sealed class ProcessWatch : IAsyncDisposable
{
    private const string Provider = "KernelTls";
    private const int BufferMegabytes = 16;
    private static readonly TimeSpan s_stopTime = TimeSpan.FromSeconds(3);

    private readonly EventPipeSession _session;

    private ProcessWatch(EventPipeSession session, int processId)
    {
        _session = session;
        Events = new ProcessEvents(processId);
        Ended = Task.Factory.StartNew(Listen, CancellationToken.None, TaskCreationOptions.LongRunning, TaskScheduler.Default);
    }

    /// <summary>Gets the events received.</summary>
    public ProcessEvents Events { get; }

    /// <summary>Gets a task that completes when the process or the session has ended.</summary>
    public Task Ended { get; }

    /// <summary>Starts to listen.</summary>
    /// <exception cref="ToolFailedException">
    /// There is no such .NET process, or it does not permit diagnostics.
    /// </exception>
    public static async Task<ProcessWatch> StartAsync(int processId, TimeSpan interval, CancellationToken cancellationToken)
    {
        Dictionary<string, string> arguments = new()
        {
            ["EventCounterIntervalSec"] = Math.Max(1, (int)interval.TotalSeconds).ToString(System.Globalization.CultureInfo.InvariantCulture),
            [KtlsEventSource.StatusArgument] = "1",
        };
        EventPipeProvider provider = new(Provider, EventLevel.Informational, (long)EventKeywords.All, arguments);
        try
        {
            EventPipeSession session = await new DiagnosticsClient(processId)
                .StartEventPipeSessionAsync([provider], requestRundown: false, BufferMegabytes, cancellationToken);
            return new ProcessWatch(session, processId);
        }
        catch (Exception e) when (e is DiagnosticsClientException or IOException or UnauthorizedAccessException or TimeoutException
            or System.Net.Sockets.SocketException or EndOfStreamException)
        {
            throw new ToolFailedException(
                ExitCode.Failed,
                $"process {processId} cannot be watched: {e.Message} Expected a running .NET process of this user, in this container and with the same TMPDIR, without DOTNET_EnableDiagnostics=0. Candidates: {Candidates()}.",
                e);
        }
    }

    public async ValueTask DisposeAsync()
    {
        using CancellationTokenSource limit = new(s_stopTime);
        try
        {
            await _session.StopAsync(limit.Token);
            await Ended.WaitAsync(limit.Token);
        }
        catch (Exception e) when (e is DiagnosticsClientException or IOException or OperationCanceledException or TimeoutException
            or System.Net.Sockets.SocketException)
        {
            // The process has exited or does not respond. There is nothing to stop, or no way to stop it.
        }

        _session.Dispose();
    }

    /// <summary>Returns the .NET processes by the sockets in TMPDIR, which remain after a process was killed.</summary>
    private static string Candidates()
    {
        const int IdField = 2;
        string[] others =
        [
            .. Directory.EnumerateFiles(Path.GetTempPath(), "dotnet-diagnostic-*-socket")
                .Select(f => Path.GetFileName(f).Split('-')[IdField])
                .Where(p => p != $"{Environment.ProcessId}" && Directory.Exists($"/proc/{p}"))
                .Distinct(),
        ];
        return others.Length == 0 ? "none" : string.Join(", ", others);
    }

    private void Listen()
    {
        using EventPipeEventSource source = new(_session.EventStream);
        source.Dynamic.All += e =>
        {
            if (e.ProviderName == Provider)
            {
                Events.Add(e);
            }
        };
        try
        {
            source.Process();
        }
        catch (Exception e) when (e is EndOfStreamException or IOException or FormatException)
        {
            // The process exited in the middle of an event.
        }
    }
}
