using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>What a server in a mode says of its connections.</summary>
internal static class Offloads
{
    public static string Expected(TlsMode mode, SslProtocols version)
    {
        // OpenSSL before 3.2 keeps receiving TLS 1.3 for itself.
        bool receives = version != SslProtocols.Tls13 || KtlsPlatform.OpenSslVersion >= new Version(3, 2);
        return mode switch
        {
            TlsMode.DirectOpenSsl => "send=openssl (DirectOpenSsl) receive=openssl (DirectOpenSsl)",
            TlsMode.Kernel when receives => "send=kernel receive=kernel",
            TlsMode.Kernel => "send=kernel receive=openssl (OpenSslTooOld)",
            _ => "stock",
        };
    }

    /// <summary>Asserts that the server is really in the mode under test.</summary>
    public static async Task AssertInAsync(TlsMode mode, HttpClient client, Uri https) =>
        Assert.Equal(
            Expected(mode, SslProtocols.Tls13), await client.GetStringAsync(new Uri(https, "/offload")).InTime());
}
