using System.Net.Sockets;
using KernelTls.Bench.Scenarios;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace KernelTls.Bench.Modes;

/// <summary>One way of getting bytes from one end to the other: what is compared.</summary>
internal abstract class Mode
{
    private const int FileBufferSize = 64 * 1024;

    private byte[]? _fileBuffer;

    /// <summary>As on the command line and in results.</summary>
    public abstract string Name { get; }

    /// <summary>At how many of a connection's two ends the kernel encrypts and decrypts; it counts those sockets.</summary>
    public virtual int KernelEnds => 0;

    /// <summary>As <see cref="KernelEnds"/>, of a connection between HttpClient and Kestrel.</summary>
    public virtual int HttpKernelEnds => KernelEnds;

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

    /// <summary>What the URIs of requests begin with.</summary>
    public virtual string Scheme => Uri.UriSchemeHttps;

    /// <summary>HttpClient and Kestrel resume sessions where they may.</summary>
    public virtual bool ResumesHttp => true;

    /// <summary>HttpClient's connections to <see cref="BenchCertificates.Host"/>.</summary>
    public abstract SocketsHttpHandler CreateHandler();

    public virtual void ConfigureServer(IWebHostBuilder server)
    {
    }

    public abstract void ConfigureEndpoint(ListenOptions endpoint);

    /// <summary>Throws unless the stream, over this socket, is in this mode.</summary>
    /// <exception cref="BenchFailedException">It is in another.</exception>
    public abstract void Verify(Stream stream, Socket socket);

    /// <summary>Throws unless the kernel has counted what so many connections come to.</summary>
    /// <exception cref="BenchFailedException">It has not.</exception>
    public void Verify(KernelCounters counted, int connections) => VerifyEnds(counted, connections, KernelEnds);

    /// <inheritdoc cref="Verify(KernelCounters, int)"/>
    public void VerifyHttp(KernelCounters counted, int connections) => VerifyEnds(counted, connections, HttpKernelEnds);

    private void VerifyEnds(KernelCounters counted, int connections, int kernelEnds)
    {
        int ends = kernelEnds * connections;
        if (counted != new KernelCounters(ends, ends))
        {
            throw new BenchFailedException($"{Name}: {connections} connections, and the kernel counts {counted} where {ends} were expected");
        }
    }
}
