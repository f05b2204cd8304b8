using KernelTls.Handshake;

namespace KernelTls.ConformanceTests;

/// <summary>Describes what SslStream does if an RSA padding is not allowed.</summary>
internal static class RsaPaddings
{
    /// <summary>
    /// Gets a value that indicates whether SslStream accepts the limits. .NET 11.0.0 gives OpenSSL 4 the number of an algorithm that it has
    /// no name for (sm2sig_sm3), which OpenSSL refuses.
    /// </summary>
    public static bool CanBeLimited { get; } =
        !HandshakeOptions.SignatureAlgorithmsFor(allowPss: false, allowPkcs1: false)!.Contains("0x", StringComparison.Ordinal);
}
