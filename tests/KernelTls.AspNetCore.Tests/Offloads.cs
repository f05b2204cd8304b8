using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>What a server in a mode says of its connections.</summary>
internal static class Offloads
{
    // OpenSSL before 3.2 keeps receiving TLS 1.3 for itself.
    private static readonly bool s_receives = KtlsPlatform.OpenSslVersion >= new Version(3, 2);

    /// <summary>Of a connection with TLS 1.3 in a server that <see cref="Require"/> is for.</summary>
    public static string Required => s_receives ? "send=kernel receive=kernel" : "send=kernel receive=openssl (DirectionNotAsked)";

    /// <summary>Kernel TLS or nothing, in the directions that can be had with TLS 1.3.</summary>
    public static void Require(KtlsOptions options)
    {
        options.Mode = KtlsMode.Required;
        options.DirectOpenSsl = false;
        options.Directions = s_receives ? KtlsDirections.Both : KtlsDirections.Send;
    }

    public static string Expected(TlsMode mode, SslProtocols version)
    {
        bool receives = version != SslProtocols.Tls13 || s_receives;
        return mode switch
        {
            TlsMode.DirectOpenSsl => "send=openssl (DirectOpenSsl) receive=openssl (DirectOpenSsl)",
            TlsMode.Kernel when receives => "send=kernel receive=kernel",
            TlsMode.Kernel => "send=kernel receive=openssl (OpenSslTooOld)",
            _ => "stock",
        };
    }

    /// <summary>Asserts that the server is really in the mode under test.</summary>
    public static Task AssertInAsync(TlsMode mode, HttpClient client, Uri https) => AssertAsync(Expected(mode, SslProtocols.Tls13), client, https);

    /// <summary>Asserts what the server says of a connection.</summary>
    public static async Task AssertAsync(string expected, HttpClient client, Uri https) =>
        Assert.Equal(expected, await client.GetStringAsync(new Uri(https, "/offload")).InTime());
}
