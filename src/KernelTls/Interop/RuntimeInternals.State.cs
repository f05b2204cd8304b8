using System.Net;
using System.Net.Security;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;

namespace KernelTls.Interop;

// The state of the base class: what members that a subclass cannot override read, and what makes them refuse. The
// members are looked up in RuntimeInternals.cs, because the order of initialization across files is not defined.
internal static partial class RuntimeInternals
{
    /// <summary>Returns the runtime's handle that owns this reference to an SSL*, and frees it by SSL_free.</summary>
    public static SafeHandle OwnSsl(nint ssl)
    {
        // ConstructorInfo.Invoke would generate code from the second call on.
        SafeHandle handle = (SafeHandle)Activator.CreateInstance(s_sslHandle!, nonPublic: true)!;
        Marshal.InitHandle(handle, ssl);
        return handle;
    }

    /// <summary>
    /// Sets the SSL* from which <see cref="SslStream.TransportContext"/> reads. The base class disposes it together with the
    /// stream.
    /// </summary>
    /// <param name="stream">The stream.</param>
    /// <param name="ssl">
    /// A handle of <see cref="OwnSsl"/>, never of a connection. <see langword="null"/> closes the one that was set, which
    /// stays in its place: the members that read it then throw <see cref="ObjectDisposedException"/>.
    /// </param>
    public static void PublishSsl(SslStream stream, SafeHandle? ssl)
    {
        object? earlier = s_securityContext!.GetValue(stream);
        if (ssl is not null)
        {
            s_securityContext.SetValue(stream, ssl);
        }

        (earlier as IDisposable)?.Dispose();
    }

    /// <summary>Gets a value that indicates whether <see cref="PublishSsl"/> has set a handle.</summary>
    public static bool HasSsl(SslStream stream) => s_securityContext!.GetValue(stream) is not null;

    /// <summary>Makes the members that a subclass cannot override throw this, as after a refusal by the base class itself.</summary>
    public static void PublishRefusal(SslStream stream, ExceptionDispatchInfo refusal) => s_exception!.SetValue(stream, refusal);

    /// <summary>
    /// Makes the base class refuse to start a handshake, through the methods that a subclass cannot override. It does not know
    /// of the handshake on OpenSSL, and would start its own in the midst of the connection.
    /// </summary>
    /// <returns>False if a handshake of the base class is running.</returns>
    public static bool TryClaimHandshake(SslStream stream)
    {
        if (!Equals(s_nestedAuth!.GetValue(stream), s_notInUse))
        {
            return false;
        }

        s_nestedAuth.SetValue(stream, s_inUse);
        return true;
    }
}
