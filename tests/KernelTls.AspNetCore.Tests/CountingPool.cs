using System.Buffers;
using KernelTls.AspNetCore.Tls;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Provides blocks of 4 KiB that are counted and reused.</summary>
internal sealed class CountingPool : MemoryPool<byte>
{
    private readonly Stack<Block> _free = new();
    private int _rented;
    private Action? _whenRead;

    public int Rented => _rented;

    public int MaxRented { get; private set; }

    public override int MaxBufferSize => TlsPipeWriter.BlockSize;

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

    /// <summary>Calls <paramref name="action"/> once, during the next access to a block's bytes.</summary>
    public void WhenRead(Action action) => _whenRead = action;

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

    private void OnRead() => Interlocked.Exchange(ref _whenRead, null)?.Invoke();

    private sealed class Block(CountingPool pool) : MemoryManager<byte>
    {
        private readonly byte[] _bytes = new byte[TlsPipeWriter.BlockSize];

        public override Memory<byte> Memory => CreateMemory(_bytes.Length);

        public override Span<byte> GetSpan()
        {
            pool.OnRead();
            return _bytes;
        }

        public override MemoryHandle Pin(int elementIndex = 0)
        {
            pool.OnRead();
            return _bytes.AsMemory(elementIndex).Pin();
        }

        public override void Unpin()
        {
        }

        protected override bool TryGetArray(out ArraySegment<byte> segment)
        {
            pool.OnRead();
            segment = _bytes;
            return true;
        }

        protected override void Dispose(bool disposing) => pool.Return(this);
    }
}
