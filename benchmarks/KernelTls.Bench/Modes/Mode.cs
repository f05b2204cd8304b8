using System.Net;
using System.Net.Sockets;
using KernelTls.Bench.Scenarios;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace KernelTls.Bench.Modes;

/// <summary>Represents one of the compared ways to transfer bytes between two ends.</summary>
internal abstract class Mode
{
    private const int FileBufferSize = 64 * 1024;

    private byte[]? _fileBuffer;

    /// <summary>Gets the name on the command line and in results.</summary>
    public abstract string Name { get; }

    /// <summary>
    /// Gets the number of ends of a connection, out of two, at which the kernel encrypts and decrypts. The kernel
    /// counts these sockets.
    /// </summary>
    public virtual int KernelEnds => 0;

    /// <summary>Gets a value that indicates whether this mode has certificates and sessions.</summary>
    public virtual bool HasHandshake => true;

    /// <summary>Creates the client's end of a connection, which takes ownership of the socket.</summary>
    public abstract Task<Stream> ConnectAsync(Socket socket);

    /// <summary>Creates the server's end of a connection, which takes ownership of the socket.</summary>
    public abstract Task<Stream> AcceptAsync(Socket socket);

    /// <summary>Announces the end of the data, so that the peer's next read returns the end of the stream.</summary>
    public abstract Task EndSendingAsync(Stream stream);

    /// <summary>
    /// Sends a whole file. A stream without a method to send files reads and writes in the way that is cheapest for the
    /// stock stream. It reads from the page cache without a change of thread and uses a buffer of four full records.
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

    /// <summary>Gets the scheme of request URIs.</summary>
    public virtual string Scheme => Uri.UriSchemeHttps;

    /// <summary>
    /// Gets a value that indicates whether HttpClient and Kestrel resume sessions if the options permit it.
    /// </summary>
    public virtual bool ResumesHttp => true;

    /// <summary>Creates the handler for HttpClient's connections to <see cref="BenchCertificates.Host"/>.</summary>
    public abstract SocketsHttpHandler CreateHandler();

    /// <summary>Gets the endpoint on which Kestrel listens.</summary>
    public virtual IPEndPoint EndPoint { get; } = new(IPAddress.Loopback, 0);

    public virtual void ConfigureServer(IWebHostBuilder server)
    {
    }

    public abstract void ConfigureEndpoint(ListenOptions endpoint);

    /// <summary>Verifies that the stream over this socket is in this mode.</summary>
    /// <exception cref="BenchFailedException">The stream is in another mode.</exception>
    public abstract void Verify(Stream stream, Socket socket);

    /// <summary>Verifies that the kernel's counters match this number of connections.</summary>
    /// <exception cref="BenchFailedException">The counters do not match.</exception>
    public void Verify(KernelSockets counted, int connections) => counted.Expect(Name, KernelEnds * connections);
}
