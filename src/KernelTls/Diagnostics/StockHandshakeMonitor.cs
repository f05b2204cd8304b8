using System.Diagnostics;
using System.Diagnostics.Tracing;

namespace KernelTls.Diagnostics;

/// <summary>
/// Finds the first handshake of an SslStream in a process with kernel TLS switched on, so that a library that creates
/// its own SslStream does not go unnoticed. Stops listening after it has found one.
/// </summary>
/// <remarks>
/// The runtime's event source writes HandshakeStart on the thread that calls AuthenticateAs…, before the first wait, so
/// the stack contains the caller. Handshakes that need no report are announced by <see cref="ExcludeNext"/> on the same
/// thread. Until a handshake is found, each handshake of the process costs the events of that source. A process without
/// event sources (the feature switch EventSourceSupport) has no report.
/// </remarks>
internal sealed class StockHandshakeMonitor : EventListener
{
    private const string HttpClientAssembly = "System.Net.Http";
    private const string KestrelAssembly = "Microsoft.AspNetCore.Server.Kestrel.Core";

    private static readonly TaskCompletionSource<StockHandshake> s_first = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private static int s_started;
    private static int s_listening;

    [ThreadStatic]
    private static bool t_excludesNext;

    private readonly Action<StockHandshake>? _found;
    private int _isDone;
    private int _isListening;
    private volatile bool _excludesServers;

    /// <summary>Begins to listen.</summary>
    /// <param name="found">The callback, called once, on the thread of the handshake.</param>
    public StockHandshakeMonitor(Action<StockHandshake> found) => _found = found;

    /// <summary>Gets a task that completes when this process's monitor has found a handshake of an SslStream.</summary>
    public static Task<StockHandshake> First => s_first.Task;

    /// <summary>Starts the monitor of this process. Calls after the first one do nothing.</summary>
    public static void Start()
    {
        if (Volatile.Read(ref s_started) == 0 && Interlocked.Exchange(ref s_started, 1) == 0)
        {
            _ = new StockHandshakeMonitor(handshake =>
            {
                KtlsEventSource.Log.StockHandshake(handshake.IsServer, handshake.TargetHost, handshake.Assembly);
                s_first.TrySetResult(handshake);
            });
        }
    }

    /// <summary>
    /// Excludes the handshake that this thread is about to start: one of this library, or one that the base class
    /// performs for a reason that is reported.
    /// </summary>
    /// <remarks>
    /// If that handshake does not start, the thread's next SslStream handshake goes unnoticed. Does nothing while no
    /// monitor listens, because no event would clear the mark.
    /// </remarks>
    public static void ExcludeNext() => t_excludesNext = Volatile.Read(ref s_listening) != 0;

    /// <inheritdoc/>
    public override void Dispose()
    {
        if (Interlocked.Exchange(ref _isListening, 0) != 0)
        {
            _ = Interlocked.Decrement(ref s_listening);
        }

        base.Dispose();
    }

    /// <summary>Returns advice on how to use kernel TLS for connections of this kind.</summary>
    public static string Advice(StockHandshake handshake) => handshake.Assembly switch
    {
        HttpClientAssembly => "Call UseKernelTls on the SocketsHttpHandler of the HttpClient, take the client from IHttpClientFactory, or "
            + "have the package KernelTls.Weave weave the assembly that makes the client.",
        "" => "The package KernelTls.Weave weaves libraries; code of your own can use KtlsStream in place of SslStream.",
        _ => $"The package KernelTls.Weave weaves it: <KernelTlsWeave Include=\"{handshake.Assembly}\" /> in the project of the application. "
            + "Code of your own can use KtlsStream in place of SslStream.",
    };

    /// <inheritdoc/>
    protected override void OnEventSourceCreated(EventSource eventSource)
    {
        if (eventSource.Name == "System.Net.Security")
        {
            if (Interlocked.Exchange(ref _isListening, 1) == 0)
            {
                _ = Interlocked.Increment(ref s_listening);
            }

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
        if (!excluded && _found is not null && eventData.Payload is [bool isServer, string targetHost])
        {
            Report(isServer, targetHost);
        }
    }

    private void Report(bool isServer, string targetHost)
    {
        if (isServer && _excludesServers)
        {
            return;
        }

        string assembly = FindCaller();
        if (assembly == KestrelAssembly)
        {
            // The transport reports each endpoint that uses the default TLS. One stack trace is enough.
            _excludesServers = true;
        }
        else if (Interlocked.Exchange(ref _isDone, 1) == 0)
        {
            Dispose();
            _found!(new StockHandshake(isServer, targetHost, assembly));
        }
    }

    private static string FindCaller()
    {
        foreach (StackFrame frame in new StackTrace().GetFrames())
        {
            string? name = DiagnosticMethodInfo.Create(frame)?.DeclaringAssemblyName.Split(',')[0];
            if (name is not (null or "System.Private.CoreLib" or "System.Net.Security" or "KernelTls"))
            {
                return name;
            }
        }

        return "";
    }
}
