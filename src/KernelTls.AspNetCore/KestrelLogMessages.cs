using System.Security.Authentication;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore;

/// <summary>What the stock middleware says of a handshake, under its name (<see cref="KestrelInternals.HttpsCategory"/>).</summary>
internal static partial class KestrelLogMessages
{
    [LoggerMessage(1, LogLevel.Debug, "Failed to authenticate HTTPS connection.", EventName = "AuthenticationFailed")]
    public static partial void AuthenticationFailed(this ILogger logger, Exception exception);

    [LoggerMessage(2, LogLevel.Debug, "Authentication of the HTTPS connection timed out.", EventName = "AuthenticationTimedOut")]
    public static partial void AuthenticationTimedOut(this ILogger logger);

    [LoggerMessage(
        3,
        LogLevel.Debug,
        "Connection {ConnectionId} established using the following protocol: {Protocol}",
        EventName = "HttpsConnectionEstablished")]
    public static partial void HttpsConnectionEstablished(this ILogger logger, string connectionId, SslProtocols protocol);
}
