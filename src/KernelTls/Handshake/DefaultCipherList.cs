using System.Runtime.InteropServices;
using System.Text;
using KernelTls.Interop;

namespace KernelTls.Handshake;

/// <summary>
/// The cipher suites for TLS 1.2 where the options name none. SslStream takes those of openssl.cnf where that names any, and a
/// stricter list of .NET's own where it does not; so .NET is asked, and its rule is not written a second time. The suites for
/// TLS 1.3 are OpenSSL's own in both cases.
/// </summary>
internal static class DefaultCipherList
{
    private static readonly Lazy<string?> s_value = new(Ask);

    /// <summary>An OpenSSL cipher list; <see langword="null"/> where .NET could not be asked. Asked once per process.</summary>
    public static string? Value => s_value.Value;

    private static unsafe string? Ask()
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
