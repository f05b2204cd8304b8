using System.Net.Security;

namespace KernelTls;

/// <summary>
/// Calls the handshake of the stream's actual type, for programs that use either stream. The options-based handshakes
/// are not virtual: the type of the variable decides which one runs.
/// </summary>
internal static class StreamHandshakes
{
    public static Task HandshakeAsClientAsync(
        this SslStream stream, SslClientAuthenticationOptions options, CancellationToken cancellationToken = default) =>
        stream is KtlsStream own
            ? own.AuthenticateAsClientAsync(options, cancellationToken)
            : stream.AuthenticateAsClientAsync(options, cancellationToken);

    public static Task HandshakeAsServerAsync(
        this SslStream stream, SslServerAuthenticationOptions options, CancellationToken cancellationToken = default) =>
        stream is KtlsStream own
            ? own.AuthenticateAsServerAsync(options, cancellationToken)
            : stream.AuthenticateAsServerAsync(options, cancellationToken);
}
