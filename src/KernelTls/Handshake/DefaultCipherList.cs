using System.Runtime.InteropServices;
using System.Text;
using KernelTls.Interop;

namespace KernelTls.Handshake;

/// <summary>Provides the TLS 1.2 cipher suites that apply when the options name none.</summary>
/// <remarks>
/// SslStream uses the suites of openssl.cnf if it names any, and otherwise a stricter list of .NET. This class queries
/// .NET instead of implementing that rule again. The TLS 1.3 suites are OpenSSL's defaults in both cases.
/// </remarks>
internal static class DefaultCipherList
{
    private static readonly Lazy<string?> s_value = new(Query);

    /// <summary>
    /// Gets an OpenSSL cipher list, or <see langword="null"/> if .NET could not be queried. Determined once per process.
    /// </summary>
    public static string? Value => s_value.Value;

    private static unsafe string? Query()
    {
        using SafeHandle context = RuntimeInternals.CreateSslContext();
        if (context.IsInvalid)
        {
            return null;
        }

        int length;
        _ = KtlsNative.KtlsNative_GetCipherList(context, null, 0, &length);
        byte[] list = new byte[length];
        fixed (byte* bytes = list)
        {
            return KtlsNative.KtlsNative_GetCipherList(context, bytes, list.Length, &length) == 0 ? Encoding.ASCII.GetString(list) : null;
        }
    }
}
