using System.Runtime.InteropServices;

namespace KernelTls.Interop;

/// <summary>
/// Owns a KtlsContext (an SSL_CTX). It may be freed before its connections, which keep what they need of it.
/// </summary>
internal sealed class SafeTlsContextHandle : SafeHandle
{
    public SafeTlsContextHandle(nint context)
        : base(0, ownsHandle: true) => SetHandle(context);

    public override bool IsInvalid => handle == 0;

    protected override bool ReleaseHandle()
    {
        KtlsNative.KtlsNative_ContextFree(handle);
        return true;
    }
}

/// <summary>Owns a KtlsConnection (an SSL). Freeing it does not touch the socket.</summary>
internal sealed class SafeTlsConnectionHandle : SafeHandle
{
    private static int s_count;

    public SafeTlsConnectionHandle(nint connection)
        : base(0, ownsHandle: true)
    {
        SetHandle(connection);
        Interlocked.Increment(ref s_count);
    }

    /// <summary>Gets the number of instances in this process.</summary>
    public static int Count => Volatile.Read(ref s_count);

    public override bool IsInvalid => handle == 0;

    protected override bool ReleaseHandle()
    {
        KtlsNative.KtlsNative_ConnectionFree(handle);
        Interlocked.Decrement(ref s_count);
        return true;
    }
}

/// <summary>Owns a KtlsSession (a reference to an SSL_SESSION).</summary>
internal sealed class SafeTlsSessionHandle : SafeHandle
{
    public SafeTlsSessionHandle(nint session)
        : base(0, ownsHandle: true) => SetHandle(session);

    public override bool IsInvalid => handle == 0;

    protected override bool ReleaseHandle()
    {
        KtlsNative.KtlsNative_SessionFree(handle);
        return true;
    }
}
