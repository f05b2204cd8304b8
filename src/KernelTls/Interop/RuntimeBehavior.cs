namespace KernelTls.Interop;

/// <summary>
/// Describes the behavior of <see cref="System.Net.Security.SslStream"/> that differs between versions of .NET.
/// <see cref="KtlsStream"/> follows the running version. No other code checks the version.
/// </summary>
internal static class RuntimeBehavior
{
    private const int Net11 = 11;

    /// <summary>Gets a value that indicates whether the peer is refused within the handshake.</summary>
    /// <remarks>
    /// In that case <see cref="System.Security.Authentication.AuthenticationException"/> contains the refusal, or the
    /// exception of the callback, as its inner exception, and the alert for a callback's refusal is handshake_failure.
    /// .NET 10 throws the refusal itself and sends no alert.
    /// </remarks>
    public static bool RefusesInHandshake { get; } = Environment.Version.Major >= Net11;

    /// <summary>
    /// Gets a value that indicates whether reading and writing after a refusal throws
    /// <see cref="InvalidOperationException"/>, as after any other failed handshake. .NET 10 throws the refusal again.
    /// </summary>
    public static bool ForgetsRefusal { get; } = Environment.Version.Major >= Net11;

    /// <summary>
    /// Gets a value that indicates whether close_notify during the handshake counts as an end of stream. .NET 10 throws
    /// an authentication failure.
    /// </summary>
    public static bool TreatsCloseNotifyAsEnd { get; } = Environment.Version.Major >= Net11;
}
