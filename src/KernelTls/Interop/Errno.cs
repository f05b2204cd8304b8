namespace KernelTls.Interop;

/// <summary>The Linux errno values this library tells apart (asm-generic/errno.h).</summary>
internal static class Errno
{
    public const int NotPermitted = 1;       // EPERM
    public const int NoEntry = 2;            // ENOENT
    public const int InputOutput = 5;        // EIO
    public const int Again = 11;             // EAGAIN, EWOULDBLOCK
    public const int NoMemory = 12;          // ENOMEM
    public const int AccessDenied = 13;      // EACCES
    public const int Busy = 16;              // EBUSY
    public const int Invalid = 22;           // EINVAL
    public const int Pipe = 32;              // EPIPE
    public const int Range = 34;             // ERANGE
    public const int NoData = 61;            // ENODATA
    public const int BadMessage = 74;        // EBADMSG
    public const int MessageSize = 90;       // EMSGSIZE
    public const int NotSupported = 95;      // ENOTSUP, EOPNOTSUPP
    public const int ConnectionReset = 104;  // ECONNRESET
    public const int NotConnected = 107;     // ENOTCONN
    public const int NoBuffers = 105;        // ENOBUFS
    public const int TimedOut = 110;         // ETIMEDOUT

    /// <summary>Returns whether a security policy said no (seccomp, a security module): no call of the kernel's TLS says so itself.</summary>
    public static bool IsDenial(int errno) => errno is NotPermitted or AccessDenied;

    /// <summary>Returns whether the same call may succeed later.</summary>
    public static bool IsPassing(int errno) => errno is Again or NoMemory or NoBuffers;
}
