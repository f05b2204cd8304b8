using System.Security.Authentication;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore;

/// <summary>
/// What the stock middleware says of a handshake, under its name (<see cref="KestrelInternals.HttpsCategory"/>). Not by
/// <see cref="LoggerMessageAttribute"/>: its generator writes the second class of an assembly before or after the first, at
/// random, and builds would differ.
/// </summary>
internal static class KestrelLogMessages
{
    private static readonly Action<ILogger, Exception?> s_authenticationFailed = LoggerMessage.Define(
        LogLevel.Debug, new EventId(1, nameof(AuthenticationFailed)), "Failed to authenticate HTTPS connection.");

    private static readonly Action<ILogger, Exception?> s_authenticationTimedOut = LoggerMessage.Define(
        LogLevel.Debug, new EventId(2, nameof(AuthenticationTimedOut)), "Authentication of the HTTPS connection timed out.");

    private static readonly Action<ILogger, string, SslProtocols, Exception?> s_established = LoggerMessage.Define<string, SslProtocols>(
        LogLevel.Debug,
        new EventId(3, nameof(HttpsConnectionEstablished)),
        "Connection {ConnectionId} established using the following protocol: {Protocol}");

    public static void AuthenticationFailed(this ILogger logger, Exception exception) =>
        s_authenticationFailed(logger, exception);

    public static void AuthenticationTimedOut(this ILogger logger) =>
        s_authenticationTimedOut(logger, null);

    public static void HttpsConnectionEstablished(this ILogger logger, string connectionId, SslProtocols protocol) =>
        s_established(logger, connectionId, protocol, null);
}
