using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Provides the offload that a server in a mode reports for its connections.</summary>
internal static class Offloads
{
    // OpenSSL before 3.2 receives TLS 1.3 itself.
    private static readonly bool s_receives = KtlsPlatform.Probe().OpenSslVersion >= new Version(3, 2);

    /// <summary>Gets the text for a connection with TLS 1.3 to a server configured by <see cref="Require"/>.</summary>
    public static string Required => s_receives ? "send=kernel receive=kernel" : "send=kernel receive=openssl (DirectionNotRequested)";

    /// <summary>Requires kernel TLS in the directions that are available with TLS 1.3.</summary>
    public static void Require(KtlsOptions options)
    {
        options.Mode = KtlsMode.Required;
        options.Fallback = KtlsFallback.SslStream;
        options.Directions = s_receives ? KtlsDirections.Both : KtlsDirections.Send;
    }

    public static string Expected(TlsMode mode, SslProtocols version)
    {
        bool receives = version != SslProtocols.Tls13 || s_receives;
        return mode switch
        {
            TlsMode.DirectOpenSsl => "send=openssl (DisabledByMode) receive=openssl (DisabledByMode)",
            TlsMode.Kernel when receives => "send=kernel receive=kernel",
            TlsMode.Kernel => "send=kernel receive=openssl (OpenSslTooOld)",
            _ => "stock",
        };
    }

    /// <summary>Returns the offload that a server reports for connections of the default TLS with a reason.</summary>
    public static string Managed(KtlsFallbackReason reason) => $"send=managed ({reason}) receive=managed ({reason})";

    /// <summary>Asserts that the server is in the mode under test.</summary>
    public static Task AssertInAsync(TlsMode mode, HttpClient client, Uri https) => AssertAsync(Expected(mode, SslProtocols.Tls13), client, https);

    /// <summary>Asserts the offload that the server reports for a connection.</summary>
    public static async Task AssertAsync(string expected, HttpClient client, Uri https) =>
        Assert.Equal(expected, await client.GetStringAsync(new Uri(https, "/offload")).InTime());
}
