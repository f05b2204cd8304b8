using System.Diagnostics.Tracing;

namespace KernelTls.LibraryTests;

/// <summary>Counts the successful handshakes of this process: all of them by the runtime's events, and those of this library.</summary>
internal sealed class HandshakeCounter : EventListener
{
    private const string RuntimeSource = "System.Net.Security";
    private const string OwnSource = "KernelTls";

    private readonly List<string> _libraries = [];
    private readonly List<string> _fallbacks = [];
    private int _all;

    public static HandshakeCounter Instance { get; } = new();

    /// <summary>Gets the number of handshakes of any stream.</summary>
    public int All => Volatile.Read(ref _all);

    /// <summary>Gets, for each handshake on OpenSSL, the woven assembly that created the stream, or an empty string.</summary>
    public string[] Libraries
    {
        get
        {
            lock (_libraries)
            {
                return [.. _libraries];
            }
        }
    }

    /// <summary>Gets the events of the streams that do not send by kernel TLS although it was switched on.</summary>
    public string[] Fallbacks
    {
        get
        {
            lock (_libraries)
            {
                return [.. _fallbacks];
            }
        }
    }

    protected override void OnEventSourceCreated(EventSource eventSource)
    {
        if (eventSource.Name is RuntimeSource or OwnSource)
        {
            EnableEvents(eventSource, EventLevel.Informational);
        }
    }

    protected override void OnEventWritten(EventWrittenEventArgs eventData)
    {
        bool isOwn = eventData.EventSource.Name == OwnSource;
        switch (eventData.EventName)
        {
            case "HandshakeStop":
                Interlocked.Increment(ref _all);
                break;

            // HandshakeStop follows.
            case "HandshakeFailed" when !isOwn:
                Interlocked.Decrement(ref _all);
                break;

            case "HandshakeCompleted" when isOwn:
                lock (_libraries)
                {
                    _libraries.Add($"{eventData.Payload![^1]}");
                    if (!Enum.TryParse($"{eventData.Payload[4]}", out KtlsFallbackReason reason)
                        || reason is not (KtlsFallbackReason.None or KtlsFallbackReason.NotEnabled or KtlsFallbackReason.DisabledByMode))
                    {
                        _fallbacks.Add($"HandshakeCompleted {string.Join(' ', eventData.Payload)}");
                    }
                }

                break;

            case "Fallback" or "StockHandshake" when isOwn:
                lock (_libraries)
                {
                    _fallbacks.Add($"{eventData.EventName} {string.Join(' ', eventData.Payload!)}");
                }

                break;
        }
    }
}
