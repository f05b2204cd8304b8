using System.Buffers;
using System.IO.Pipelines;
using KernelTls.AspNetCore.Tls;
using KernelTls.Tests;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Hosting;
using Microsoft.Extensions.DependencyInjection;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests which memory the reads of a connection have.</summary>
public sealed class InputPoolTests
{
    private const int Block = InputPool.Block;
    private const int Large = InputPool.LargestRecord;

    public static TheoryData<TlsMode> All => [.. Modes.Every];

    [Fact]
    public async Task Small_reads_have_blocks_of_the_connections_pool_and_give_them_back()
    {
        CountingPool blocks = new();
        Source source = new(blocks);

        Assert.Equal(Enumerable.Repeat(Block, 20), await source.ReadAsync(Enumerable.Repeat(Block - 1, 20)));

        Assert.Equal((0, 1), (blocks.Rented, blocks.MaxRented));
    }

    [Fact]
    public async Task A_filled_block_makes_the_next_memory_large_and_eight_small_reads_a_block_again()
    {
        CountingPool blocks = new();
        Source source = new(blocks);

        Assert.Equal([Block, .. Enumerable.Repeat(Large, 8), Block], await source.ReadAsync([Block, .. Enumerable.Repeat(Block - 1, 8), 1]));

        Assert.Equal((0, 1), (blocks.Rented, blocks.MaxRented));
    }

    [Fact]
    public async Task A_read_that_a_block_could_not_have_held_keeps_memory_large()
    {
        Source source = new(new CountingPool());
        IEnumerable<int> requests = Enumerable.Repeat<int[]>([Block, .. Enumerable.Repeat(1, 7)], 3).SelectMany(r => r);

        Assert.Equal([Block, .. Enumerable.Repeat(Large, 23)], await source.ReadAsync(requests));
    }

    [Fact]
    public async Task A_wait_without_memory_and_the_end_of_the_stream_change_nothing()
    {
        Source source = new(new CountingPool(), useZeroByteReads: true);

        Assert.Equal([Block, Block, Large, Large], await source.ReadAsync([1, Block, 1, 0]));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_pending_read_has_a_block_of_Kestrels_pool(TlsMode mode)
    {
        CountingFactory factory = new();
        await using Server server = await Server.StartAsync(mode, builder: builder =>
        {
            builder.Services.AddSingleton<IMemoryPoolFactory<byte>>(factory);
            builder.WebHost.UseSockets(sockets => sockets.WaitForDataBeforeAllocatingBuffer = false);
        });
        using HttpClient client = Server.CreateClient();
        Pattern.AssertAt(0, await client.GetByteArrayAsync(new Uri(server.Https, "/bytes/100")).InTime());

        // While the request is processed, blocks are rented and returned. Afterwards only the read has one.
        await Limits.UntilAsync(() => factory.Rented == 1, "only the read to have a block");
        await Task.Delay(Limits.Absence);
        Assert.Equal(1, factory.Rented);
    }

    /// <summary>Represents a connection whose reads return the numbers of bytes that a test chooses, and records the size of each read's memory.</summary>
    private sealed class Source(CountingPool blocks, bool useZeroByteReads = false) : MemoryStream
    {
        private readonly InputPool _pool = new(blocks);
        private readonly Queue<int> _next = new();
        private readonly List<int> _lengths = [];

        /// <summary>Reads all, and returns the sizes of the reads' memory.</summary>
        public async Task<IReadOnlyList<int>> ReadAsync(IEnumerable<int> arriving)
        {
            foreach (int count in arriving)
            {
                _next.Enqueue(count);
            }

            PipeReader reader = PipeReader.Create(this, new StreamPipeReaderOptions(_pool, Large, Block, leaveOpen: true, useZeroByteReads));
            while (_next.Count > 0)
            {
                ReadResult read = await reader.ReadAsync().AsTask().InTime();
                reader.AdvanceTo(read.Buffer.End);
            }

            await reader.CompleteAsync();
            return _lengths;
        }

        public override ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
        {
            int bytesRead = 0;
            if (!buffer.IsEmpty)
            {
                _lengths.Add(buffer.Length);
                bytesRead = _next.Dequeue();
            }

            _pool.OnRead(bytesRead, buffer.Length);
            return ValueTask.FromResult(bytesRead);
        }
    }

    private sealed class CountingFactory : IMemoryPoolFactory<byte>
    {
        private readonly List<CountingPool> _pools = [];

        public int Rented
        {
            get
            {
                lock (_pools)
                {
                    return _pools.Sum(p => p.Rented);
                }
            }
        }

        public MemoryPool<byte> Create(MemoryPoolOptions? options = null)
        {
            lock (_pools)
            {
                _pools.Add(new CountingPool());
                return _pools[^1];
            }
        }
    }
}
