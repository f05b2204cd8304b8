using System.Reflection;
using System.Runtime.InteropServices;

namespace KernelTls.Interop;

// The OCSP response that a server has stapled. .NET keeps it with the X509, where a chain that is built finds it.
internal static partial class RuntimeInternals
{
    // .NET 11 attaches the response to any X509. .NET 10 attaches it to the X509 that it gets from the SSL.
    private static readonly MethodInfo? s_updateStaple = SslHandleType is { } handle
        ? Type.GetType("Interop+Ssl, System.Net.Security")?.GetMethod("SslUpdateOcspStaple", Static, [handle, typeof(nint)])
        : null;

    private static readonly MethodInfo? s_getPeerCertificate = SslHandleType is { } handle
        ? Type.GetType("Interop+Ssl, System.Net.Security")?.GetMethod("SslGetPeerCertificate", Static, [handle])
        : null;

    private static readonly Action<nint>? s_freeCertificate = Type.GetType("Interop+Crypto, System.Net.Security")
        ?.GetMethod("X509Destroy", Static, [typeof(nint)])?.CreateDelegate<Action<nint>>();

    private static Type? SslHandleType => Type.GetType("Microsoft.Win32.SafeHandles.SafeSslHandle, System.Net.Security");

    private static bool CanAttachStaples =>
        s_sslHandle is not null && (s_updateStaple?.ReturnType == typeof(void) || (s_getPeerCertificate?.ReturnType == typeof(nint) && s_freeCertificate is not null));

    /// <summary>
    /// Attaches the OCSP response that a client's connection holds to the server's certificate. A response that OpenSSL
    /// cannot parse is ignored, and so is a second one for the same certificate.
    /// </summary>
    /// <param name="ssl">The SSL*.</param>
    /// <param name="certificate">The X509* of the leaf.</param>
    /// <param name="isInSession">Whether the SSL's session has the certificate, as it has once OpenSSL's verification ends.</param>
    /// <returns>False if this runtime can attach it only when the session has the certificate.</returns>
    public static bool TryAttachStaple(nint ssl, nint certificate, bool isInSession)
    {
        if (s_updateStaple is null && !isInSession)
        {
            return false;
        }

        SafeHandle handle = OwnSsl(ssl);
        try
        {
            if (s_updateStaple is not null)
            {
                s_updateStaple.Invoke(null, [handle, certificate]);
            }
            else
            {
                s_freeCertificate!((nint)s_getPeerCertificate!.Invoke(null, [handle])!);
            }

            return true;
        }
        finally
        {
            // The handle does not own the SSL.
            handle.SetHandleAsInvalid();
        }
    }
}
