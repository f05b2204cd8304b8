using System.Security.Authentication;

namespace KernelTls.Diagnostics;

/// <summary>Describes connections on OpenSSL with the same result.</summary>
/// <param name="IsServer">Whether this end is the server.</param>
/// <param name="Protocol">The negotiated version.</param>
/// <param name="Offload">The data paths; the kernel's also where a device does its work.</param>
/// <param name="Library">The assembly whose woven code created the streams, or an empty string.</param>
internal sealed record ConnectionKind(bool IsServer, SslProtocols Protocol, KtlsOffload Offload, string Library) : IProcessKind
{
    // The compiler's members would use generic code that is not compiled ahead of time.
    public bool Equals(ConnectionKind? other) =>
        other is not null && IsServer == other.IsServer && Protocol == other.Protocol && Offload == other.Offload && Library == other.Library;

    public override int GetHashCode() => (((Offload.GetHashCode() * 31) + (int)Protocol) * 31) + (IsServer ? 1 : 0);

    /// <inheritdoc/>
    public StatusEntry Describe()
    {
        IEnumerable<string> advice = new[] { Offload.SendFallbackReason, Offload.ReceiveFallbackReason }
            .Where(r => !KtlsEventSource.IsChoice(r)).Distinct().Select(Advice.Named);
        return new StatusEntry("connections", Library, $"{Offload}", string.Join(". ", [$"{(IsServer ? "server" : "client")}, {Protocol}", .. advice]));
    }
}
