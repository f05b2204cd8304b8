using System.Diagnostics.Tracing;

namespace KernelTls.Diagnostics;

/// <summary>
/// The event source <c>KernelTls</c>: what each handshake came to and why a connection fell back. Costs a flag test while
/// nobody listens.
/// </summary>
[EventSource(Name = "KernelTls")]
internal sealed class KtlsEventSource : EventSource
{
    public static KtlsEventSource Log { get; } = new();

    /// <summary>A handshake on OpenSSL ended well.</summary>
    [NonEvent]
    public void HandshakeCompleted(bool isServer, string protocol, string cipherSuite, KtlsOffload offload)
    {
        if (IsEnabled(EventLevel.Informational, EventKeywords.None))
        {
            HandshakeCompleted(
                isServer,
                protocol,
                cipherSuite,
                offload.Send.ToString(),
                offload.SendFallbackReason.ToString(),
                offload.Receive.ToString(),
                offload.ReceiveFallbackReason.ToString());
        }
    }

    /// <summary>The base class takes over before the handshake, for a reason other than kernel TLS not being asked for.</summary>
    [NonEvent]
    public void Fallback(bool isServer, KtlsFallbackReason reason, string detail)
    {
        if (IsEnabled(EventLevel.Warning, EventKeywords.None))
        {
            Fallback(isServer, reason.ToString(), detail);
        }
    }

    /// <summary>A handshake on OpenSSL failed.</summary>
    [NonEvent]
    public void HandshakeFailed(bool isServer, Exception failure)
    {
        if (IsEnabled(EventLevel.Warning, EventKeywords.None))
        {
            HandshakeFailed(isServer, failure.GetType().FullName ?? "", failure.Message);
        }
    }

    /// <summary>The kernel refused what an option of <see cref="KtlsOptions"/> asks for; the connection goes on without.</summary>
    [Event(4, Level = EventLevel.Warning)]
    public void OptionRefused(bool isServer, string option, string detail) => WriteEvent(4, isServer, option, detail);

    [Event(1, Level = EventLevel.Informational)]
    private void HandshakeCompleted(
        bool isServer, string protocol, string cipherSuite, string send, string sendReason, string receive, string receiveReason) =>
        WriteEvent(1, isServer, protocol, cipherSuite, send, sendReason, receive, receiveReason);

    [Event(2, Level = EventLevel.Warning)]
    private void Fallback(bool isServer, string reason, string detail) => WriteEvent(2, isServer, reason, detail);

    [Event(3, Level = EventLevel.Warning)]
    private void HandshakeFailed(bool isServer, string exceptionType, string message) =>
        WriteEvent(3, isServer, exceptionType, message);
}
