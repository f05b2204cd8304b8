using System.Net.Security;
using System.Security.Authentication;

namespace KernelTls.Demo;

/// <summary>What one end of a connection says about itself after the handshake; without an offload it is the stock TLS.</summary>
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

    /// <summary>Why the kernel does not do it; null: it does, or this end is the stock TLS and does not ask.</summary>
    public KtlsFallbackReason? ReasonOf(KtlsDirections direction) =>
        direction == KtlsDirections.Send ? Offload?.SendFallbackReason : Offload?.ReceiveFallbackReason;

    public override string ToString() => $"{Side}  {NameOf(Protocol)}  {CipherSuite}  {Offload?.ToString() ?? "stock SslStream"}";
}
