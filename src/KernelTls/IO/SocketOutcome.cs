using System.Net.Sockets;

namespace KernelTls.IO;

/// <summary>What a socket receive came to, without an exception.</summary>
internal readonly record struct SocketOutcome(int Bytes, SocketError Error)
{
    /// <summary>
    /// EIO: the next record is not data, and stays queued until OpenSSL takes it. .NET has no SocketError for EIO (nor for
    /// EBADMSG and EKEYEXPIRED, which mean "ask OpenSSL" as well) and reports them as <see cref="SocketError.SocketError"/>.
    /// </summary>
    public bool IsForOpenSsl => Error == SocketError.SocketError;
}
