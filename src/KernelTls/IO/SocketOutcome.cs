using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>What a socket receive came to, without an exception.</summary>
internal readonly record struct SocketOutcome(int Bytes, SocketError Error)
{
    /// <summary>
    /// Returns the errno to tell OpenSSL before it reads, 0 where the error is not about a record. The kernel refuses a record
    /// by EMSGSIZE, EINVAL or EBADMSG, and says EIO in front of one that is not data. .NET has no SocketError for EIO, EBADMSG
    /// and EKEYEXPIRED, and reports all three as <see cref="SocketError.SocketError"/>: EIO stands for these here.
    /// </summary>
    public int RecordErrno => Error switch
    {
        SocketError.SocketError => Errno.InputOutput,
        SocketError.MessageSize => Errno.MessageSize,
        SocketError.InvalidArgument => Errno.Invalid,
        _ => 0,
    };
}
