using System.Buffers;
using KernelTls.AspNetCore.Tls;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Blocks of 4 KiB that are counted, and used again.</summary>
internal sealed class CountingPool : MemoryPool<byte>
{
    private readonly Stack<Block> _free = new();
    private int _rented;

    public int Rented => _rented;

    public int MaxRented { get; private set; }

    public override int MaxBufferSize => OutputSegment.BlockSize;

    public override IMemoryOwner<byte> Rent(int minBufferSize = -1)
    {
        if (minBufferSize > MaxBufferSize)
        {
            throw new ArgumentOutOfRangeException(nameof(minBufferSize), minBufferSize, "More than a block.");
        }

        lock (_free)
        {
            MaxRented = Math.Max(MaxRented, ++_rented);
            return _free.TryPop(out Block? block) ? block : new Block(this);
        }
    }

    protected override void Dispose(bool disposing)
    {
    }

    private void Return(Block block)
    {
        lock (_free)
        {
            _rented--;
            _free.Push(block);
        }
    }

    private sealed class Block(CountingPool pool) : IMemoryOwner<byte>
    {
        private readonly byte[] _bytes = new byte[OutputSegment.BlockSize];

        public Memory<byte> Memory => _bytes;

        public void Dispose() => pool.Return(this);
    }
}
