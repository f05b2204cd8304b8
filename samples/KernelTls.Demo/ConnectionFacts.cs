using System.Net.Security;
using System.Security.Authentication;

namespace KernelTls.Demo;

/// <summary>Describes one end of a connection after the handshake. Without an offload the end uses stock TLS.</summary>
internal sealed record ConnectionFacts(string Side, SslProtocols Protocol, TlsCipherSuite CipherSuite, KtlsOffload? Offload)
{
    public static ConnectionFacts Of(string side, KtlsStream stream) =>
        new(side, stream.SslProtocol, stream.NegotiatedCipherSuite, stream.Offload);

    public static string NameOf(SslProtocols protocol) => protocol switch
    {
        SslProtocols.Tls12 => "TLS 1.2",
        SslProtocols.Tls13 => "TLS 1.3",
        _ => protocol.ToString(),
    };

    public bool IsInKernel(KtlsDirections direction) => Offload is not null && ReasonOf(direction) == KtlsFallbackReason.None;

    /// <summary>Returns the reason why the kernel does not process a direction; null if it does, or if this end uses stock TLS.</summary>
    public KtlsFallbackReason? ReasonOf(KtlsDirections direction) =>
        direction == KtlsDirections.Send ? Offload?.SendFallbackReason : Offload?.ReceiveFallbackReason;

    public override string ToString() => $"{Side}  {NameOf(Protocol)}  {CipherSuite}  {Offload?.ToString() ?? "stock SslStream"}";
}
