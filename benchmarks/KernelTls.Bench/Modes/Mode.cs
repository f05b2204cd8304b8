using System.Net.Sockets;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Modes;

/// <summary>One way of getting bytes from one end to the other: what is compared.</summary>
internal abstract class Mode
{
    private const int FileBufferSize = 64 * 1024;

    private byte[]? _fileBuffer;

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

    /// <summary>
    /// Sends a whole file. Where the stream has no way of its own: read and write, by what is cheapest on the stock stream, a
    /// read from the page cache without changing threads, and a buffer of four whole records.
    /// </summary>
    public virtual async ValueTask SendFileAsync(Stream stream, BenchFile file)
    {
        byte[] buffer = _fileBuffer ??= new byte[FileBufferSize];
        int count;
        for (long offset = 0; offset < file.Length; offset += count)
        {
            count = RandomAccess.Read(file.Handle, buffer, offset);
            await stream.WriteAsync(buffer.AsMemory(0, count));
        }
    }

    /// <summary>Throws unless the stream, over this socket, is in this mode.</summary>
    /// <exception cref="BenchFailedException">It is in another.</exception>
    public abstract void Verify(Stream stream, Socket socket);

    /// <summary>Throws unless the kernel has counted what so many connections, both their ends, come to.</summary>
    /// <exception cref="BenchFailedException">It has not.</exception>
    public void Verify(KernelCounters counted, int connections)
    {
        int ends = UsesKernel ? 2 * connections : 0;
        if (counted != new KernelCounters(ends, ends))
        {
            throw new BenchFailedException($"{Name}: {connections} connections, and the kernel counts {counted} where {ends} were expected");
        }
    }
}
