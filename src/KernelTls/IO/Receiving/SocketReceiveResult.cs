using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>Represents the result of a socket receive, with errors as values.</summary>
internal readonly record struct SocketReceiveResult(int Bytes, SocketError Error)
{
    /// <summary>Gets the errno to pass to OpenSSL before it reads, or 0 if the error is not about a record.</summary>
    /// <remarks>
    /// The kernel reports EMSGSIZE, EINVAL or EBADMSG for a record that it refuses, and EIO if the next record is not
    /// data. .NET has no SocketError for EIO, EBADMSG and EKEYEXPIRED and reports all three as
    /// <see cref="SocketError.SocketError"/>. EIO stands for these here.
    /// </remarks>
    public int RecordErrno => Error switch
    {
        SocketError.SocketError => Errno.InputOutput,
        SocketError.MessageSize => Errno.MessageSize,
        SocketError.InvalidArgument => Errno.Invalid,
        _ => 0,
    };

    /// <summary>
    /// Returns the error of a call that failed with <paramref name="errno"/>. A send reports the same errors of records as a
    /// receive does.
    /// </summary>
    public static SocketError ErrorOf(int errno) => errno switch
    {
        Errno.MessageSize => SocketError.MessageSize,
        Errno.Invalid => SocketError.InvalidArgument,
        _ => TlsErrors.ToSocketError(errno),
    };
}
