using System.Security.Authentication;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore;

/// <summary>
/// Writes the transport's log messages, except for those of Kestrel's HTTPS middleware. Failed connections are logged
/// at Debug, as by the default transport.
/// </summary>
internal static partial class LogMessages
{
    [LoggerMessage(1, LogLevel.Debug, "Kernel TLS is switched off ({Reason}). HTTPS endpoints use the default SslStream-based TLS.")]
    public static partial void SwitchedOff(this ILogger logger, KtlsFallbackReason reason);

    [LoggerMessage(2, LogLevel.Information, "Kernel TLS is not available ({Reason}), and no endpoint uses https ({Addresses}). {Remedy}")]
    public static partial void NotAvailable(this ILogger logger, KtlsFallbackReason reason, string addresses, string remedy);

    [LoggerMessage(3, LogLevel.Warning, "{Endpoint} uses the default SslStream-based TLS: {Reason}. {Remedy}")]
    public static partial void EndpointStaysStock(this ILogger logger, string endpoint, KtlsFallbackReason reason, string remedy);

    [LoggerMessage(4, LogLevel.Information, "{Endpoint} uses kernel TLS.")]
    public static partial void EndpointServed(this ILogger logger, string endpoint);

    [LoggerMessage(5, LogLevel.Debug, "Connection {ConnectionId}: {Offload}.")]
    public static partial void Established(this ILogger logger, string connectionId, KtlsOffload offload);

    [LoggerMessage(6, LogLevel.Debug, "{Endpoint} uses the default SslStream-based TLS, as configured ({Reason}).")]
    public static partial void EndpointSwitchedOff(this ILogger logger, string endpoint, KtlsFallbackReason reason);

    [LoggerMessage(8, LogLevel.Debug, "Connection {ConnectionId} failed.")]
    public static partial void ConnectionFailed(this ILogger logger, string connectionId, Exception failure);

    [LoggerMessage(9, LogLevel.Debug, "Connection {ConnectionId} was aborted: {Why}")]
    public static partial void ConnectionAborted(this ILogger logger, string connectionId, string why);

    [LoggerMessage(10, LogLevel.Debug, "A connection was reset by the client before it was accepted.")]
    public static partial void AcceptReset(this ILogger logger);

    [LoggerMessage(11, LogLevel.Error, "Connection {ConnectionId}: a ConnectionClosed callback failed.")]
    public static partial void ClosedCallbackFailed(this ILogger logger, string connectionId, Exception failure);

    [LoggerMessage(12, LogLevel.Debug, "Connection {ConnectionId}: a file is copied instead of sent by sendfile, because a middleware replaced the response's writer.")]
    public static partial void FileIsCopied(this ILogger logger, string connectionId);

    [LoggerMessage(14, LogLevel.Warning, "{Maker} uses a stock SslStream for a connection to {Peer}, which the switch for kernel TLS does not affect. {Remedy} This is reported once.")]
    public static partial void StockStreamInUse(this ILogger logger, string maker, string peer, string remedy);

    [LoggerMessage(13, LogLevel.Information, "{Endpoint} uses OpenSSL on the socket, without kernel TLS: {Reason}. {Remedy}")]
    public static partial void EndpointServedByOpenSsl(this ILogger logger, string endpoint, KtlsFallbackReason reason, string remedy);

    [LoggerMessage(15, LogLevel.Debug, "Connection {ConnectionId}: an HTTP/2 stream that Kestrel reuses was still marked as scheduled. It was repaired.")]
    public static partial void StreamRepaired(this ILogger logger, string connectionId);

    [LoggerMessage(16, LogLevel.Warning, "{Library} is woven, but uses the stock TLS ({Reason}): the stream between its SslStream and the socket is a {Stream}. This is reported once.")]
    public static partial void WovenLibraryStaysStock(this ILogger logger, string library, KtlsFallbackReason reason, string stream);

    [LoggerMessage(17, LogLevel.Information, "{Library} is woven: its {Role} connections with {Protocol} use {Offload}. This is reported once.")]
    public static partial void WovenLibraryServed(this ILogger logger, string library, string role, SslProtocols protocol, KtlsOffload offload);

    [LoggerMessage(18, LogLevel.Information, "Kernel TLS is switched on, but no endpoint uses https ({Addresses}).")]
    public static partial void NoHttpsEndpoint(this ILogger logger, string addresses);
}
