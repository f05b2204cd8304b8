using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore;

/// <summary>
/// What the transport says, beside what it says in the stock middleware's name. Connections that fail are Debug, as the stock
/// transport has it.
/// </summary>
internal static partial class LogMessages
{
    [LoggerMessage(1, LogLevel.Debug, "Kernel TLS is switched off ({Reason}): https endpoints are served by the stock TLS.")]
    public static partial void SwitchedOff(this ILogger logger, KtlsFallbackReason reason);

    [LoggerMessage(2, LogLevel.Warning, "Kernel TLS is not to be had ({Reason}): https endpoints are served by the stock TLS. {Detail}")]
    public static partial void NotAvailable(this ILogger logger, KtlsFallbackReason reason, string detail);

    [LoggerMessage(3, LogLevel.Warning, "{Endpoint} is served by the stock TLS: {Reason}.")]
    public static partial void EndpointStaysStock(this ILogger logger, string endpoint, KtlsFallbackReason reason);

    [LoggerMessage(4, LogLevel.Information, "{Endpoint} is served by kernel TLS.")]
    public static partial void EndpointServed(this ILogger logger, string endpoint);

    [LoggerMessage(5, LogLevel.Debug, "Connection {ConnectionId}: {Offload}.")]
    public static partial void Established(this ILogger logger, string connectionId, KtlsOffload offload);

    [LoggerMessage(6, LogLevel.Debug, "{Endpoint} is served by the stock TLS, as it was told to ({Reason}).")]
    public static partial void EndpointSwitchedOff(this ILogger logger, string endpoint, KtlsFallbackReason reason);

    [LoggerMessage(8, LogLevel.Debug, "Connection {ConnectionId}: failed.")]
    public static partial void ConnectionFailed(this ILogger logger, string connectionId, Exception failure);

    [LoggerMessage(9, LogLevel.Debug, "Connection {ConnectionId}: aborted: {Why}")]
    public static partial void ConnectionAborted(this ILogger logger, string connectionId, string why);

    [LoggerMessage(10, LogLevel.Debug, "A connection was reset before it was accepted.")]
    public static partial void AcceptReset(this ILogger logger);

    [LoggerMessage(11, LogLevel.Error, "Connection {ConnectionId}: a callback of ConnectionClosed failed.")]
    public static partial void ClosedCallbackFailed(this ILogger logger, string connectionId, Exception failure);

    [LoggerMessage(12, LogLevel.Debug, "Connection {ConnectionId}: a file is copied, because the response's writer does not lead to the connection.")]
    public static partial void FileIsCopied(this ILogger logger, string connectionId);

    [LoggerMessage(13, LogLevel.Information, "{Endpoint} is served by OpenSSL on the socket, without the kernel (DirectOpenSsl).")]
    public static partial void EndpointServedWithoutKernel(this ILogger logger, string endpoint);
}
