using System.Buffers;
using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests writes of many segments in every mode of KtlsStream. SslStream has no such write.</summary>
public class GatherWriteTests
{
    /// <summary>The record payload above which segments must have shared a record.</summary>
    private const int FullRecord = 16_384;

    public static TheoryData<TlsMode, SslProtocols> Own =>
        [.. Modes.All.Where(r => r.Data.Item1 != TlsMode.Stock)];

    public static TheoryData<TlsMode, SslProtocols> OnOpenSsl => Modes.AllOnOpenSsl;

    [Theory]
    [MemberData(nameof(Own))]
    public async Task Segments_of_every_size_arrive_in_order(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        KtlsStream client = (KtlsStream)pair.Client;
        int[][] writes =
        [
            [1], [0, 0], [0, 1, 0], [1, 2, 3], [16_383, 1, 1], [100, 40_000, 0, 5],
            [.. Enumerable.Repeat(7, 300)], [.. Enumerable.Repeat(4_096, 129)], [],
        ];
        long total = writes.Sum(w => w.Sum()) + writes.Length;
        Task<int> receiving = Pattern.ReceiveAsync(pair.Server, total);
        long position = 0;
        foreach (int[] sizes in writes)
        {
            ReadOnlySequence<byte> data = Segments(position, sizes);
            await client.WriteAsync(data).InTime($"{sizes.Length} segments of {data.Length} bytes");
            position += data.Length;

            // Alternates with ordinary writes.
            await client.WriteAsync(Pattern.At(position++, 1)).InTime();
        }

        await receiving.InTime();
    }

    [Theory]
    [MemberData(nameof(Own))]
    public async Task Small_segments_share_full_records(TlsMode mode, SslProtocols version)
    {
        using RecordTap tap = await RecordTap.ConnectAsync();
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, mode, version, sockets: tap.Ends);
        await pair.Client.WriteAsync(Pattern.At(0, 1)).InTime();
        await Pattern.ReceiveAsync(pair.Server, 1).InTime();
        int before = tap.Records.Length;

        const int Count = 64;
        const int Size = 1_000;
        await ((KtlsStream)pair.Client).WriteAsync(Segments(0, Enumerable.Repeat(Size, Count).ToArray())).InTime();
        await Pattern.ReceiveAsync(pair.Server, Count * Size).InTime();

        int[] records = tap.Records[before..];
        Assert.Equal((Count * Size / FullRecord) + 1, records.Length);
        Assert.All(records[..^1], r => Assert.True(r > FullRecord, $"records of {string.Join(", ", records)} bytes"));
    }

    [Theory]
    [MemberData(nameof(Own))]
    public async Task A_slow_reader_gets_every_byte(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ShrinkBuffers();
        const int Size = 1_500;
        const int Count = 3_000;
        Task writing = ((KtlsStream)pair.Client).WriteAsync(Segments(0, Enumerable.Repeat(Size, Count).ToArray())).AsTask();
        await writing.StaysPending();

        await Pattern.ReceiveAsync(pair.Server, Size * Count, buffer: 10_000).InTime("the slow reader");

        await writing.InTime();
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task It_counts_as_one_write(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ShrinkBuffers();
        KtlsStream client = (KtlsStream)pair.Client;
        const int Half = TlsPair.MoreThanFits / 2;
        ReadOnlySequence<byte> data = Segments(0, [Half, Half]);
        Task writing = client.WriteAsync(data).AsTask();
        await writing.StaysPending();

        await Assert.ThrowsAsync<NotSupportedException>(() => client.WriteAsync(new byte[1]).AsTask());
        await Assert.ThrowsAsync<NotSupportedException>(() => client.WriteAsync(data).AsTask());

        await Pattern.ReceiveAsync(pair.Server, data.Length).InTime();
        await writing.InTime();
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Cancelled_half_way_nothing_follows(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ShrinkBuffers();
        KtlsStream client = (KtlsStream)pair.Client;
        using CancellationTokenSource source = new();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => client.WriteAsync(Segments(0, [1, 1]), new CancellationToken(true)).InTime());
        Task writing = client.WriteAsync(Segments(0, [1_000, TlsPair.MoreThanFits]), source.Token).AsTask();
        await writing.StaysPending();

        await source.CancelAsync();

        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => writing.InTime());
        await Assert.ThrowsAsync<IOException>(() => client.WriteAsync(Segments(0, [1, 1])).InTime());
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task After_close_notify_it_is_refused(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        KtlsStream client = (KtlsStream)pair.Client;
        await client.ShutdownAsync().InTime();

        await Assert.ThrowsAsync<InvalidOperationException>(() => client.WriteAsync(Segments(0, [1, 1])).InTime());

        Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime());
        await client.DisposeAsync();
        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await client.WriteAsync(Segments(0, [1, 1])));
    }

    /// <summary>Returns the pattern's bytes from a position, with each segment in a separate array.</summary>
    internal static ReadOnlySequence<byte> Segments(long position, int[] sizes)
    {
        Segment? first = null;
        Segment? last = null;
        foreach (int size in sizes)
        {
            last = new Segment(Pattern.Take(size, position), last);
            first ??= last;
            position += size;
        }

        return first is null ? ReadOnlySequence<byte>.Empty : new ReadOnlySequence<byte>(first, 0, last!, last!.Memory.Length);
    }

    private sealed class Segment : ReadOnlySequenceSegment<byte>
    {
        public Segment(byte[] bytes, Segment? before)
        {
            Memory = bytes;
            if (before is not null)
            {
                before.Next = this;
                RunningIndex = before.RunningIndex + before.Memory.Length;
            }
        }
    }
}
