namespace KernelTls.Diagnostics;

/// <summary>Describes connections that the base class serves for the same reason.</summary>
/// <param name="IsServer">Whether this end is the server.</param>
/// <param name="Reason">The reason.</param>
/// <param name="Detail">What the platform lacks, or the stream that is in the way; may be empty.</param>
/// <param name="Library">The assembly whose woven code created the streams, or an empty string.</param>
/// <param name="Stream">The type of the stream between a woven library's SslStream and the socket, if that is in the way, or an empty string.</param>
internal sealed record FallbackKind(bool IsServer, KtlsFallbackReason Reason, string Detail, string Library, string Stream) : IProcessKind
{
    /// <inheritdoc/>
    public StatusEntry Describe() => new(
        "fallback", Library, $"{Reason}", $"{(IsServer ? "server" : "client")}. {Advice.On(Reason)} {Detail}".TrimEnd());
}
