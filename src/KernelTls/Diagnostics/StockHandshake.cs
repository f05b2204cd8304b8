namespace KernelTls.Diagnostics;

/// <summary>Describes a handshake of an SslStream that this library did not create.</summary>
/// <param name="IsServer">Whether this end is the server.</param>
/// <param name="TargetHost">The server's name as given by the client; empty for a server.</param>
/// <param name="Assembly">
/// The name of the assembly that started the handshake; empty if the stack does not show it.
/// </param>
internal sealed record StockHandshake(bool IsServer, string TargetHost, string Assembly);
