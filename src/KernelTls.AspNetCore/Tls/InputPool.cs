using System.Buffers;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Chooses the memory for each read of a connection: a block of Kestrel's pool, as on the default transport, or memory for a whole
/// record while data streams. Not thread-safe: the reads of a connection follow one another.
/// </summary>
/// <remarks>
/// Kestrel's HTTP/2 code holds the memory until a thread of the pool has processed it, so that a thousand connections hold a thousand
/// at once. The shared array pool keeps a few dozen arrays of a size, and would allocate the others anew for each request.
/// </remarks>
/// <param name="blocks">The connection's pool, whose blocks have 4 KiB.</param>
internal sealed class InputPool(MemoryPool<byte> blocks) : MemoryPool<byte>
{
    /// <summary>The payload size of a full record (RFC 8446, section 5.1).</summary>
    public const int LargestRecord = 1 << 14;

    /// <summary>The size of the pool's blocks.</summary>
    public const int Block = TlsPipeWriter.BlockSize;

    /// <summary>The number of reads that a block could have held, after which memory is a block again. A request's header before each upload is one.</summary>
    private const int ReadsUntilSmall = 8;

    // How many more reads have large memory, unless one of them needs it.
    private int _largeReads;

    /// <summary>Gets 0 while data streams. The pipe then takes an array of the shared array pool, which needs no object that owns it.</summary>
    public override int MaxBufferSize => _largeReads > 0 ? 0 : LargestRecord;

    /// <summary>Rents a block. <paramref name="minBufferSize"/> is that of a large read, and does not matter.</summary>
    public override IMemoryOwner<byte> Rent(int minBufferSize = -1) => blocks.Rent();

    /// <summary>Makes the next memory large after a read that filled its own, and small again after several that a block could have held.</summary>
    /// <param name="bytesRead">The number of bytes that were read.</param>
    /// <param name="length">The size of the memory.</param>
    public void OnRead(int bytesRead, int length)
    {
        if (bytesRead >= Math.Min(length, Block) && bytesRead > 0)
        {
            _largeReads = ReadsUntilSmall;
        }
        else if (_largeReads > 0 && length > 0)
        {
            _largeReads--;
        }
    }

    protected override void Dispose(bool disposing)
    {
    }
}
