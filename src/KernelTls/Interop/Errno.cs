namespace KernelTls.Interop;

/// <summary>Contains the Linux errno values that this library distinguishes (asm-generic/errno.h).</summary>
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
    public const int NoCall = 38;            // ENOSYS
    public const int NoData = 61;            // ENODATA
    public const int BadMessage = 74;        // EBADMSG
    public const int MessageSize = 90;       // EMSGSIZE
    public const int NoOption = 92;          // ENOPROTOOPT
    public const int NotSupported = 95;      // ENOTSUP, EOPNOTSUPP
    public const int ConnectionReset = 104;  // ECONNRESET
    public const int NotConnected = 107;     // ENOTCONN
    public const int NoBuffers = 105;        // ENOBUFS
    public const int TimedOut = 110;         // ETIMEDOUT
    public const int KeyExpired = 127;       // EKEYEXPIRED

    /// <summary>
    /// Returns whether the errno comes from a security policy (seccomp, a security module). Kernel TLS itself never
    /// returns it.
    /// </summary>
    public static bool IsDenial(int errno) => errno is NotPermitted or AccessDenied;

    /// <summary>Returns whether the errno says that a kernel or sandbox does not implement the call.</summary>
    public static bool IsAbsence(int errno) => errno is NoCall or NoOption or NotSupported;

    /// <summary>Returns whether the same call may succeed later.</summary>
    public static bool IsTransient(int errno) => errno is Again or NoMemory or NoBuffers;
}
