using System.Diagnostics.Tracing;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using KernelTls.Diagnostics;

namespace KernelTls.Interop;

/// <summary>
/// Provides access to the runtime's own reporting of TLS connections: the event source System.Net.Security with its
/// counters, and the key log.
/// </summary>
/// <remarks>
/// Both are internal to the runtime. No connection depends on them: if a member is missing, nothing is reported.
/// </remarks>
internal static class RuntimeTelemetry
{
    private const BindingFlags Any = BindingFlags.Static | BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic;

    // Each member is looked up by constants, so the trimmer keeps it, and nothing else of the types.
    private const string TypeName = "System.Net.Security.NetSecurityTelemetry, System.Net.Security";
    private const string KeyLogger = "SslKeyLogger, System.Net.Security";

    private static readonly EventSource? s_source = Type.GetType(TypeName)?.GetField("Log", Any)?.GetValue(null) as EventSource;
    private static readonly Action<bool, string>? s_started =
        Bind<Action<bool, string>>(Type.GetType(TypeName)?.GetMethod("HandshakeStart", Any, [typeof(bool), typeof(string)]));

    private static readonly Action<SslProtocols, long, bool>? s_completed = Bind<Action<SslProtocols, long, bool>>(
        Type.GetType(TypeName)?.GetMethod("HandshakeCompleted", Any, [typeof(SslProtocols), typeof(long), typeof(bool)]));

    private static readonly Action<bool, long, string>? s_failed = Bind<Action<bool, long, string>>(
        Type.GetType(TypeName)?.GetMethod("HandshakeFailed", Any, [typeof(bool), typeof(long), typeof(string)]));

    private static readonly Action<SslProtocols>? s_closed =
        Bind<Action<SslProtocols>>(Type.GetType(TypeName)?.GetMethod("ConnectionClosed", Any, [typeof(SslProtocols)]));

    private static readonly bool s_isKnown = s_started is not null && s_completed is not null && s_failed is not null && s_closed is not null;

    private static readonly WriteLine? s_writeKeys =
        Type.GetType(KeyLogger)?.GetMethod("WriteLineRaw", Any, [typeof(ReadOnlySpan<byte>)])?.CreateDelegate<WriteLine>();

    private delegate void WriteLine(ReadOnlySpan<byte> line);

    /// <summary>
    /// Gets a value that indicates whether the event source has a listener. SslStream checks the same at each
    /// handshake.
    /// </summary>
    public static bool IsEnabled => s_isKnown && s_source!.IsEnabled();

    /// <summary>
    /// Gets a value that indicates whether the application has enabled the key log (System.Net.EnableSslKeyLogging and
    /// SSLKEYLOGFILE) and its file could be opened. The runtime decides that once per process.
    /// </summary>
    public static bool LogsKeys { get; } =
        s_writeKeys is not null && Type.GetType(KeyLogger)?.GetProperty("IsEnabled", Any)?.GetValue(null) is true;

    /// <summary>
    /// Reports that a handshake begins. Exactly one of <see cref="Completed"/> and <see cref="Failed"/> follows.
    /// </summary>
    public static void Started(bool isServer, string targetHost)
    {
        StockHandshakeMonitor.ExcludeNext();
        s_started!(isServer, targetHost);
    }

    /// <summary>Reports that a connection is open, until <see cref="Closed"/>.</summary>
    public static void Completed(SslProtocols protocol, long started) => s_completed!(protocol, started, true);

    public static void Failed(bool isServer, long started, Exception failure) => s_failed!(isServer, started, failure.Message);

    public static void Closed(SslProtocols protocol) => s_closed!(protocol);

    /// <summary>Receives a line of the key log from the shim. Used only if <see cref="LogsKeys"/> is true.</summary>
    [UnmanagedCallersOnly]
    public static unsafe void OnKeys(byte* line) => s_writeKeys!(MemoryMarshal.CreateReadOnlySpanFromNullTerminated(line));

    private static T? Bind<T>(MethodInfo? method)
        where T : Delegate => s_source is null ? null : method?.CreateDelegate<T>(s_source);
}
