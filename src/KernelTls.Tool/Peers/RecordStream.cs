using System.Net.Sockets;

namespace KernelTls.Tool.Peers;

/// <summary>
/// Reads a connection one record at a time. The TLS stream above has decrypted one record before it reads the next, so
/// each read of plaintext can be attributed to its records.
/// </summary>
internal sealed class RecordStream(NetworkStream inner) : Stream
{
    /// <summary>Gets the scanner of the peer's data.</summary>
    public RecordScanner Inbound { get; } = new();

    /// <summary>Gets a value that indicates whether the end of the TCP connection has been read.</summary>
    public bool Ended { get; private set; }

    public override bool CanRead => true;

    public override bool CanWrite => true;

    public override bool CanSeek => false;

    public override long Length => throw new NotSupportedException();

    public override long Position
    {
        get => throw new NotSupportedException();
        set => throw new NotSupportedException();
    }

    public override async ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
    {
        int count = await inner.ReadAsync(buffer[..Math.Min(buffer.Length, Inbound.Missing)], cancellationToken);
        Inbound.Push(buffer.Span[..count]);
        Ended |= count == 0 && !buffer.IsEmpty;
        return count;
    }

    public override int Read(byte[] buffer, int offset, int count)
    {
        int read = inner.Read(buffer, offset, Math.Min(count, Inbound.Missing));
        Inbound.Push(buffer.AsSpan(offset, read));
        Ended |= read == 0 && count > 0;
        return read;
    }

    public override ValueTask WriteAsync(ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default) =>
        inner.WriteAsync(buffer, cancellationToken);

    public override void Write(byte[] buffer, int offset, int count) => inner.Write(buffer, offset, count);

    public override void Flush() => inner.Flush();

    public override Task<int> ReadAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken) =>
        ReadAsync(buffer.AsMemory(offset, count), cancellationToken).AsTask();

    public override Task WriteAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken) =>
        WriteAsync(buffer.AsMemory(offset, count), cancellationToken).AsTask();

    public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

    public override void SetLength(long value) => throw new NotSupportedException();

    protected override void Dispose(bool disposing)
    {
        if (disposing)
        {
            inner.Dispose();
        }

        base.Dispose(disposing);
    }
}
