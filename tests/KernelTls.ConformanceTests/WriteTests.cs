using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

public class WriteTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    [Theory]
    [MemberData(nameof(All))]
    public async Task Writes_of_every_size_arrive(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        foreach (int size in new[] { 1, 2, 16_383, 16_384, 16_385, 32_768, (1 << 20) + 7 })
        {
            byte[] data = Pattern.Take(size, position: size);
            Task writing = pair.Client.WriteAsync(data).AsTask();
            byte[] received = new byte[size];
            await pair.Server.ReadExactlyAsync(received).InTime($"{size} bytes");
            await writing.InTime();
            Pattern.AssertAt(size, received);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task An_empty_write_is_no_data(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        Task<int> reading = pair.Server.ReadAsync(new byte[10]).AsTask();

        await pair.Client.WriteAsync(ReadOnlyMemory<byte>.Empty).InTime();
        await Limits.Blocking(() => pair.Client.Write([])).InTime();
        pair.Client.Write([], 0, 0);
        await reading.StaysPending();

        await pair.Client.WriteAsync(new byte[] { 1 }).InTime();
        Assert.Equal(1, await reading.InTime());
    }

    /// <summary>
    /// Kernel TLS accepts few flags of send, which depend on its version: a send with another flag would fail.
    /// </summary>
    [Theory]
    [Trait("Pitfall", "13")]
    [MemberData(nameof(All))]
    public async Task Every_way_of_writing_sends_the_same_bytes(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        const int Part = 20_000;
        Func<byte[], Task>[] ways =
        [
            b => pair.Client.WriteAsync(b, 0, b.Length, CancellationToken.None),
            b => pair.Client.WriteAsync(b.AsMemory()).AsTask(),
            b => Limits.Blocking(() => pair.Client.Write(b, 0, b.Length)),
            b => Limits.Blocking(() => pair.Client.Write(b.AsSpan())),
            b => Limits.Blocking(() => pair.Client.Write(b)),
            b => Task.Factory.FromAsync(pair.Client.BeginWrite, pair.Client.EndWrite, b, 0, b.Length, null),
            b => Limits.Blocking(() => Array.ForEach(b, pair.Client.WriteByte)),
        ];

        byte[] received = new byte[Part];
        for (int way = 0; way < ways.Length; way++)
        {
            Task writing = ways[way](Pattern.Take(Part, way * Part));
            await pair.Server.ReadExactlyAsync(received).InTime($"what way {way} of writing sends");
            await writing.InTime($"way {way} of writing");
            Pattern.AssertAt(way * Part, received);
        }

        pair.Client.Flush();
        await pair.Client.FlushAsync().InTime();
    }

    [Theory]
    [Trait("Pitfall", "1")]
    [MemberData(nameof(All))]
    public async Task The_memory_is_the_caller_s_again_once_a_write_has_ended(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ClientSocket.SendBufferSize = 8 * 1024;
        const int Rounds = 20;
        const int Size = 100_000;
        Task sending = Task.Run(async () =>
        {
            byte[] buffer = new byte[Size];
            for (int round = 0; round < Rounds; round++)
            {
                Pattern.Take(Size, round * Size).CopyTo(buffer, 0);
                await pair.Client.WriteAsync(buffer);
                buffer.AsSpan().Fill(0xEE);
            }
        });

        await Pattern.ReceiveAsync(pair.Server, Rounds * Size, buffer: 5_000).InTime();
        await sending.InTime();
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_write_waits_for_a_peer_that_does_not_read(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ShrinkBuffers();
        const int Size = TlsPair.MoreThanFits;
        Task writing = Pattern.SendAsync(pair.Client, Size, chunk: 1 << 20);
        await writing.StaysPending();

        await Pattern.ReceiveAsync(pair.Server, Size).InTime();
        await writing.InTime();
    }
}
