namespace KernelTls.Interop;

/// <summary>The Linux errno values this library tells apart (asm-generic/errno.h).</summary>
internal static class Errno
{
    public const int NoEntry = 2;            // ENOENT
    public const int Again = 11;             // EAGAIN, EWOULDBLOCK
    public const int Busy = 16;              // EBUSY
    public const int Pipe = 32;              // EPIPE
    public const int Range = 34;             // ERANGE
    public const int NoData = 61;            // ENODATA
    public const int NotSupported = 95;      // ENOTSUP, EOPNOTSUPP
    public const int ConnectionReset = 104;  // ECONNRESET
    public const int NotConnected = 107;     // ENOTCONN
    public const int TimedOut = 110;         // ETIMEDOUT
}
