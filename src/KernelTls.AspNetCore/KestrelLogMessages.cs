using System.Security.Authentication;
using KernelTls.AspNetCore.Internals;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore;

/// <summary>
/// Writes the messages that Kestrel's HTTPS middleware writes about a handshake, under its category
/// (<see cref="KestrelInternals.HttpsCategory"/>).
/// </summary>
/// <remarks>
/// It does not use <see cref="LoggerMessageAttribute"/>: the generator writes the second class of an assembly before or
/// after the first at random, so builds would not be reproducible.
/// </remarks>
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
