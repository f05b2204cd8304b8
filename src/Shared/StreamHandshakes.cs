using System.Net.Security;

namespace KernelTls;

/// <summary>
/// The options-based handshakes are not virtual: which one runs depends on the variable's type, and SslStream's own would run
/// the stock one. These call the stream's own, for programs that are handed either stream.
/// </summary>
internal static class StreamHandshakes
{
    public static Task ShakeClientAsync(
        this SslStream stream, SslClientAuthenticationOptions options, CancellationToken cancellationToken = default) =>
        stream is KtlsStream own
            ? own.AuthenticateAsClientAsync(options, cancellationToken)
            : stream.AuthenticateAsClientAsync(options, cancellationToken);

    public static Task ShakeServerAsync(
        this SslStream stream, SslServerAuthenticationOptions options, CancellationToken cancellationToken = default) =>
        stream is KtlsStream own
            ? own.AuthenticateAsServerAsync(options, cancellationToken)
            : stream.AuthenticateAsServerAsync(options, cancellationToken);
}
