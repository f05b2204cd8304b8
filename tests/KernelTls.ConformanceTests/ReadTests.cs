using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

public class ReadTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode> ChangingKeys => KeyChangeTests.Changing;

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_record_is_read_in_parts_of_any_size(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        byte[] sent = Pattern.Take(10_000);
        await pair.Client.WriteAsync(sent).InTime();

        byte[] received = new byte[sent.Length];
        int total = 0;
        foreach (int size in new[] { 1, 2, 3, 7, 1, 100, 333, 1, 4096, 10_000 })
        {
            int read = await pair.Server.ReadAsync(received.AsMemory(total, Math.Min(size, received.Length - total))).InTime();
            Assert.InRange(read, 1, size);
            total += read;
        }

        await pair.Server.ReadExactlyAsync(received.AsMemory(total)).InTime();
        Assert.Equal(sent, received);
    }

    /// <summary>
    /// Data that has arrived together with KeyUpdates is read, although nothing more arrives. One receive takes all of it, and
    /// the socket does not become readable again.
    /// </summary>
    [Theory]
    [MemberData(nameof(ChangingKeys))]
    public async Task Data_that_arrived_with_key_updates_is_read(TlsMode mode)
    {
        const int Updates = 5;
        const int Size = 100;
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
        KtlsStream client = (KtlsStream)pair.Client;
        pair.ClientSocket.NoDelay = true;
        for (int i = 0; i < Updates; i++)
        {
            await client.WriteAsync(Pattern.At(i * Size, Size)).InTime();
            await client.UpdateSendKeyAsync(requestPeerUpdate: false).InTime();
        }

        await client.WriteAsync(Pattern.At(Updates * Size, Size)).InTime();

        byte[] received = new byte[(Updates + 1) * Size];
        await pair.Server.ReadExactlyAsync(received).InTime();
        Assert.Equal(Pattern.Take(received.Length), received);
    }

    /// <summary>One receive takes all small records that have arrived, as that of SslStream does.</summary>
    [Theory]
    [InlineData(SslProtocols.Tls12)]
    [InlineData(SslProtocols.Tls13)]
    public async Task One_receive_takes_many_records_for_OpenSSL(SslProtocols version)
    {
        const int Records = 8;
        await using TlsPair pair = await TlsPair.ConnectAsync(TlsMode.Stock, TlsMode.DirectOpenSsl, version);
        pair.ClientSocket.NoDelay = true;
        for (int i = 0; i < Records; i++)
        {
            await pair.Client.WriteAsync(Pattern.At(i, 1)).InTime();
        }

        int arrived = pair.ServerSocket.Available;
        byte[] received = new byte[Records];
        await pair.Server.ReadExactlyAsync(received.AsMemory(0, 1)).InTime();
        int left = pair.ServerSocket.Available;
        await pair.Server.ReadExactlyAsync(received.AsMemory(1)).InTime();

        Assert.InRange(arrived, Records * 20, 16_384);
        Assert.Equal(0, left);
        Assert.Equal(Pattern.Take(Records), received);
    }

    /// <summary>The caller can then process together what arrived together, as with SslStream.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task One_read_returns_the_data_of_all_records_that_have_arrived(TlsMode mode, SslProtocols version)
    {
        const int Records = 8;
        await using TlsPair pair = await TlsPair.ConnectAsync(TlsMode.Stock, mode, version);
        for (int i = 0; i < Records; i++)
        {
            await pair.Client.WriteAsync(Pattern.At(i, 1)).InTime();
        }

        byte[] received = new byte[Records + 1];
        Assert.Equal(Records, await pair.Server.ReadAsync(received).InTime());

        Assert.Equal(Pattern.Take(Records), received[..Records]);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Many_records_arrive_in_order_whatever_the_sizes_of_writes_and_reads(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        const int Length = 300_001;
        Task sending = Task.Run(async () =>
        {
            int[] sizes = [1, 5, 16_383, 2, 16_384, 16_385, 777, 40_000];
            for (int sent = 0, i = 0; sent < Length; i++)
            {
                int size = Math.Min(sizes[i % sizes.Length], Length - sent);
                await pair.Client.WriteAsync(Pattern.At(sent, size));
                sent += size;
            }
        });

        int[] buffers = [1, 100, 16_383, 16_384, 16_385, 65_536, 3];
        byte[] buffer = new byte[65_536];
        for (int received = 0, i = 0; received < Length; i++)
        {
            int read = await pair.Server.ReadAsync(buffer.AsMemory(0, buffers[i % buffers.Length])).InTime();
            Assert.NotEqual(0, read);
            Pattern.AssertAt(received, buffer.AsSpan(0, read));
            received += read;
        }

        await sending.InTime();
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task An_empty_read_waits_for_data_and_takes_none(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);

        // In TLS 1.3 the server's session tickets are in transit to the client: they are not data.
        Task<int> empty = pair.Client.ReadAsync(Memory<byte>.Empty).AsTask();
        await empty.StaysPending();

        await pair.Server.WriteAsync(new byte[] { 1, 2, 3 }).InTime();
        Assert.Equal(0, await empty.InTime());

        byte[] received = new byte[3];
        await pair.Client.ReadExactlyAsync(received).InTime();
        Assert.Equal([1, 2, 3], received);
    }

    /// <summary>
    /// .NET completes an empty receive at any event of the socket, even one for bytes that were already read. Such
    /// events occur all the time here.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task An_empty_read_is_not_woken_by_what_was_read_before(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        byte[] one = new byte[1];
        for (int i = 0; i < 300; i++)
        {
            await pair.Server.WriteAsync(one).InTime();
            Assert.Equal(1, await pair.Client.ReadAsync(one).InTime());
            Task<int> empty = pair.Client.ReadAsync(Memory<byte>.Empty).AsTask();
            await Task.Delay(1);

            Assert.False(empty.IsCompleted, $"after read {i}: there is nothing to read");

            await pair.Server.WriteAsync(one).InTime();
            Assert.Equal(0, await empty.InTime());
            Assert.Equal(1, await pair.Client.ReadAsync(one).InTime());
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task An_empty_read_returns_at_once_where_data_is_ready(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        await pair.Client.WriteAsync(new byte[] { 1, 2, 3 }).InTime();
        byte[] received = new byte[3];
        Assert.Equal(1, await pair.Server.ReadAsync(received.AsMemory(0, 1)).InTime());

        Assert.Equal(0, await pair.Server.ReadAsync(Memory<byte>.Empty).InTime());

        await pair.Server.ReadExactlyAsync(received.AsMemory(1)).InTime();
        Assert.Equal([1, 2, 3], received);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task An_empty_read_ends_with_the_stream(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        Task<int> empty = pair.Server.ReadAsync(Memory<byte>.Empty).AsTask();

        await pair.Client.ShutdownAsync().InTime();

        Assert.Equal(0, await empty.InTime());
        Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task An_empty_read_after_session_tickets_still_waits(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, TlsMode.Stock, version);
        Task<int> empty = pair.Client.ReadAsync(Memory<byte>.Empty).AsTask();
        await empty.StaysPending();

        await pair.Client.WriteAsync(new byte[] { 9 }).InTime();
        await pair.Server.ReadExactlyAsync(new byte[1]).InTime();
        Assert.False(empty.IsCompleted);

        await pair.Server.WriteAsync(new byte[] { 1 }).InTime();
        Assert.Equal(0, await empty.InTime());
        Assert.Equal(1, await pair.Client.ReadAsync(new byte[1]).InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Every_way_of_reading_gives_the_same_bytes(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        const int Part = 20_000;
        Task sending = Pattern.SendAsync(pair.Client, 8 * Part);
        Func<byte[], Task<int>>[] ways =
        [
            b => pair.Server.ReadAsync(b, 0, b.Length, CancellationToken.None),
            b => pair.Server.ReadAsync(b.AsMemory()).AsTask(),
            b => Limits.Blocking(() => pair.Server.Read(b, 0, b.Length)),
            b => Limits.Blocking(() => pair.Server.Read(b.AsSpan())),
            b => Task.Factory.FromAsync(pair.Server.BeginRead, pair.Server.EndRead, b, 0, b.Length, null),
            async b =>
            {
                await pair.Server.ReadExactlyAsync(b);
                return b.Length;
            },
            b => pair.Server.ReadAtLeastAsync(b, b.Length).AsTask(),
            b => Limits.Blocking(() =>
            {
                for (int i = 0; i < b.Length; i++)
                {
                    b[i] = (byte)pair.Server.ReadByte();
                }

                return b.Length;
            }),
        ];

        for (int way = 0, received = 0; way < ways.Length; way++)
        {
            for (int part = 0; part < Part;)
            {
                byte[] buffer = new byte[Part - part];
                int read = await ways[way](buffer).InTime($"way {way} of reading");
                Assert.NotEqual(0, read);
                Pattern.AssertAt(received, buffer.AsSpan(0, read));
                part += read;
                received += read;
            }
        }

        await sending.InTime();
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_read_goes_to_its_place_in_the_array_and_nowhere_else(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        await pair.Client.WriteAsync(Enumerable.Repeat((byte)0xAA, 100).ToArray()).InTime();

        byte[] buffer = new byte[20];
        int read = await pair.Server.ReadAsync(buffer, 5, 10, CancellationToken.None).InTime();

        Assert.All(buffer[..5], b => Assert.Equal(0, b));
        Assert.All(buffer[5..(5 + read)], b => Assert.Equal(0xAA, b));
        Assert.All(buffer[15..], b => Assert.Equal(0, b));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Copying_goes_on_to_the_end_of_the_stream(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        using MemoryStream copy = new();
        Task copying = pair.Server.CopyToAsync(copy);

        await Pattern.SendAsync(pair.Client, 200_000).InTime();
        await pair.Client.ShutdownAsync().InTime();

        await copying.InTime();
        Assert.Equal(200_000, copy.Length);
        Pattern.AssertAt(0, copy.ToArray());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_byte_is_read_as_such_and_the_end_as_minus_one(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        await pair.Client.WriteAsync(new byte[] { 0, 255 }).InTime();
        await pair.Client.ShutdownAsync().InTime();

        int[] values = await Limits.Blocking(
            () => new[] { pair.Server.ReadByte(), pair.Server.ReadByte(), pair.Server.ReadByte(), pair.Server.ReadByte() }).InTime();

        Assert.Equal([0, 255, -1, -1], values);
    }
}
