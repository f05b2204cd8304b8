using System.Diagnostics;
using System.Diagnostics.Tracing;
using KernelTls.Offload;

namespace KernelTls.Diagnostics;

/// <summary>
/// Finds the handshakes of an SslStream in a process with kernel TLS switched on, so that code that creates its own SslStream does not go
/// unnoticed. Reports each kind once.
/// </summary>
/// <remarks>
/// The runtime's event source writes HandshakeStart on the thread that calls AuthenticateAs…, before the first wait, so
/// the stack contains the caller. Handshakes that need no report are announced by <see cref="ExcludeNext"/> on the same
/// thread. Each handshake of the process costs the events of that source, and few cost a look at the stack (<see cref="StackBudget"/>). A
/// process without event sources (the feature switch EventSourceSupport) has no report.
/// </remarks>
internal sealed class StockHandshakeMonitor : EventListener
{
    /// <summary>The number of HttpClient's peers that are reported: a client of many hosts would fill the log.</summary>
    private const int HttpPeers = 4;

    private static readonly KtlsOptions s_options = new();
    private static int s_started;
    private static int s_monitors;

    [ThreadStatic]
    private static bool t_excludesNext;

    private readonly Action<StockHandshake>? _found;
    private readonly StackBudget? _budget;
    private readonly HashSet<StockHandshake> _known = [];
    private int _isDisposed;
    private int _httpPeers;

    /// <summary>Begins to listen.</summary>
    /// <param name="found">The callback, called once for each kind, on the thread of the handshake.</param>
    /// <param name="time">The clock that limits the looks at the stack.</param>
    public StockHandshakeMonitor(Action<StockHandshake> found, TimeProvider? time = null)
    {
        _ = Interlocked.Increment(ref s_monitors);
        _budget = new StackBudget(time ?? TimeProvider.System);
        _found = found;
    }

    /// <summary>
    /// Gets or sets a value that indicates whether Kestrel's endpoints are reported elsewhere: by the transport of KernelTls.AspNetCore.
    /// </summary>
    public static bool IsKestrelReported { get; set; }

    /// <summary>
    /// Starts the monitor of this process if a switch is on. Calls after the first one do nothing.
    /// </summary>
    public static void Start()
    {
        if (Volatile.Read(ref s_started) == 0 && Interlocked.Exchange(ref s_started, 1) == 0 && Toggles.AreOn)
        {
            // First, because other threads can begin handshakes meanwhile.
            _ = new StockHandshakeMonitor(static handshake => ThreadPool.UnsafeQueueUserWorkItem(Report, handshake, preferLocal: false));

            // `ktls` finds the source in a process that has not used a stream yet.
            _ = KtlsEventSource.Log;
        }
    }

    /// <summary>
    /// Excludes the handshake that this thread is about to start: one of this library, or one that the base class
    /// performs for a reason that is reported.
    /// </summary>
    /// <remarks>
    /// If that handshake does not start, the thread's next SslStream handshake goes unnoticed. Does nothing
    /// without a monitor, because no event would clear the mark.
    /// </remarks>
    public static void ExcludeNext() => t_excludesNext = Volatile.Read(ref s_monitors) != 0;

    /// <inheritdoc/>
    public override void Dispose()
    {
        if (Interlocked.Exchange(ref _isDisposed, 1) == 0)
        {
            _ = Interlocked.Decrement(ref s_monitors);
        }

        base.Dispose();
    }

    /// <inheritdoc/>
    protected override void OnEventSourceCreated(EventSource eventSource)
    {
        if (eventSource.Name == "System.Net.Security")
        {
            EnableEvents(eventSource, EventLevel.Informational);
        }
    }

    /// <inheritdoc/>
    protected override void OnEventWritten(EventWrittenEventArgs eventData)
    {
        if (eventData.EventName != "HandshakeStart")
        {
            return;
        }

        bool excluded = t_excludesNext;
        t_excludesNext = false;
        if (!excluded && _found is not null && eventData.Payload is [bool isServer, string targetHost] && _budget!.TryTake(isServer, targetHost))
        {
            Look(isServer, targetHost);
        }
    }

    private void Look(bool isServer, string targetHost)
    {
        (string assembly, string caller, string origin) = FindCaller();
        if (assembly == StockHandshake.KestrelAssembly && IsKestrelReported)
        {
            return;
        }

        // HttpClient connects for whichever code sends a request, and the stack does not show it: the peer does.
        bool isHttp = assembly == StockHandshake.HttpClientAssembly;
        StockHandshake kind = new(isServer, targetHost, assembly, caller, origin);
        lock (_known)
        {
            if ((isHttp && _httpPeers == HttpPeers) || !_known.Add(isHttp ? kind : kind with { TargetHost = "" }))
            {
                return;
            }

            _httpPeers += isHttp ? 1 : 0;
        }

        _found!(kind);
    }

    /// <summary>Reports a kind, unless kernel TLS is not available: then no advice would help, and the reason is reported instead.</summary>
    private static void Report(StockHandshake handshake)
    {
        EngineChoice choice = KtlsStream.ChooseEngine(s_options);
        if (choice.Engine == Engine.Managed)
        {
            ProcessStatus.Fallbacks.Add(new FallbackKind(handshake.IsServer, choice.Reason, choice.Detail, "", ""));
            return;
        }

        ProcessStatus.StockHandshakes.Add(handshake);
        KtlsEventSource.Log.StockHandshake(handshake);
    }

    /// <summary>Returns the assembly and the type that started the handshake and, above the framework's frames, the assembly that called it.</summary>
    private static (string Assembly, string Caller, string Origin) FindCaller()
    {
        (string Assembly, string Caller) found = ("", "");
        foreach (StackFrame frame in new StackTrace().GetFrames())
        {
            DiagnosticMethodInfo? method = DiagnosticMethodInfo.Create(frame);
            string? name = method?.DeclaringAssemblyName.Split(',')[0];
            if (name is null or "System.Private.CoreLib" or "System.Net.Security" or "KernelTls")
            {
                continue;
            }

            if (found.Assembly.Length == 0)
            {
                // Without the state machine or the closure of the method.
                found = (name, method!.DeclaringTypeName?.Split("+<")[0] ?? "");
                if (!StockHandshake.IsFramework(name))
                {
                    break;
                }
            }
            else if (!StockHandshake.IsFramework(name))
            {
                return (found.Assembly, found.Caller, name);
            }
        }

        return (found.Assembly, found.Caller, "");
    }
}
