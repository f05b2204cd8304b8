using System.Diagnostics.CodeAnalysis;
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
[UnconditionalSuppressMessage("Trimming", "IL2080", Justification = "ILLink.Descriptors.xml keeps these members. One that is missing nevertheless is not called.")]
internal static class RuntimeTelemetry
{
    private const BindingFlags Any = BindingFlags.Static | BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic;

    private static readonly Type? s_type = Type.GetType("System.Net.Security.NetSecurityTelemetry, System.Net.Security");
    private static readonly EventSource? s_source = s_type?.GetField("Log", Any)?.GetValue(null) as EventSource;
    private static readonly Action<bool, string>? s_started = Find<Action<bool, string>>("HandshakeStart", typeof(bool), typeof(string));
    private static readonly Action<SslProtocols, long, bool>? s_completed =
        Find<Action<SslProtocols, long, bool>>("HandshakeCompleted", typeof(SslProtocols), typeof(long), typeof(bool));

    private static readonly Action<bool, long, string>? s_failed =
        Find<Action<bool, long, string>>("HandshakeFailed", typeof(bool), typeof(long), typeof(string));

    private static readonly Action<SslProtocols>? s_closed = Find<Action<SslProtocols>>("ConnectionClosed", typeof(SslProtocols));
    private static readonly bool s_isKnown = s_started is not null && s_completed is not null && s_failed is not null && s_closed is not null;

    private static readonly Type? s_keyLogger = Type.GetType("SslKeyLogger, System.Net.Security");
    private static readonly WriteLine? s_writeKeys =
        s_keyLogger?.GetMethod("WriteLineRaw", Any, [typeof(ReadOnlySpan<byte>)])?.CreateDelegate<WriteLine>();

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
        s_writeKeys is not null && s_keyLogger!.GetProperty("IsEnabled", Any)?.GetValue(null) is true;

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

    private static T? Find<T>(string name, params Type[] parameters)
        where T : Delegate => s_source is null ? null : s_type!.GetMethod(name, Any, parameters)?.CreateDelegate<T>(s_source);
}
