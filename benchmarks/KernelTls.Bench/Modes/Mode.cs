using System.Net.Sockets;

namespace KernelTls.Bench.Modes;

/// <summary>One way of getting bytes from one end to the other: what is compared.</summary>
internal abstract class Mode
{
    /// <summary>As on the command line and in results.</summary>
    public abstract string Name { get; }

    /// <summary>Data is encrypted and decrypted by the kernel, which counts the sockets.</summary>
    public virtual bool UsesKernel => false;

    /// <summary>There are certificates and sessions in this mode.</summary>
    public virtual bool HasHandshake => true;

    /// <summary>The client's end of a connection; owns the socket.</summary>
    public abstract Task<Stream> ConnectAsync(Socket socket);

    /// <summary>The server's end of a connection; owns the socket.</summary>
    public abstract Task<Stream> AcceptAsync(Socket socket);

    /// <summary>Says that nothing more will be sent, so that the peer's next read is the end of the stream.</summary>
    public abstract Task EndSendingAsync(Stream stream);

    /// <summary>Throws unless the stream is in this mode.</summary>
    /// <exception cref="BenchFailedException">It is in another.</exception>
    public abstract void Verify(Stream stream);
}
