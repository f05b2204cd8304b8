using System.Net.Sockets;

namespace KernelTls.Tool.Peers;

/// <summary>
/// A connection that is read a record at a time: whoever reads through it has decrypted one record before it asks for the
/// next, so that each read of plaintext can be told which records it took.
/// </summary>
internal sealed class RecordTap(NetworkStream inner) : Stream
{
    /// <summary>What the peer has sent.</summary>
    public RecordScanner Inbound { get; } = new();

    /// <summary>The peer has closed the TCP connection, and somebody has read so far.</summary>
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
