using System.Buffers;
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
    public void Small_reads_have_blocks_of_the_connections_pool_and_give_them_back()
    {
        CountingPool blocks = new();
        InputPool pool = new(blocks);
        for (int i = 0; i < 20; i++)
        {
            Assert.Equal(Block, Rent(pool));
            pool.OnRead(Block - 1, Block);
        }

        Assert.Equal((0, 1), (blocks.Rented, blocks.MaxRented));
    }

    [Fact]
    public void A_filled_block_makes_the_next_memory_large_and_eight_small_reads_a_block_again()
    {
        InputPool pool = new(new CountingPool());
        pool.OnRead(Block, Block);
        for (int i = 0; i < 8; i++)
        {
            Assert.Equal(Large, Rent(pool));
            pool.OnRead(Block - 1, Large);
        }

        Assert.Equal(Block, Rent(pool));
    }

    [Theory]
    [InlineData(Block, Large)] // what a block could not have held
    [InlineData(100, 100)] // the rest of the memory was filled
    public void A_read_that_needs_large_memory_keeps_it_large(int bytesRead, int length)
    {
        InputPool pool = new(new CountingPool());
        pool.OnRead(Block, Block);
        for (int i = 0; i < 7; i++)
        {
            pool.OnRead(1, Large);
        }

        pool.OnRead(bytesRead, length);
        pool.OnRead(1, Large);

        Assert.Equal(Large, Rent(pool));
    }

    [Fact]
    public void A_wait_without_memory_and_the_end_of_the_stream_change_nothing()
    {
        InputPool pool = new(new CountingPool());
        pool.OnRead(0, 0);
        pool.OnRead(0, Block);
        Assert.Equal(Block, Rent(pool));

        pool.OnRead(Block, Block);
        for (int i = 0; i < 20; i++)
        {
            pool.OnRead(0, 0);
        }

        Assert.Equal(Large, Rent(pool));
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
        await Task.Delay(Limits.Absence);
        Assert.Equal(1, factory.Rented);
    }

    private static int Rent(InputPool pool)
    {
        using IMemoryOwner<byte> memory = pool.Rent(Large);
        return memory.Memory.Length;
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
