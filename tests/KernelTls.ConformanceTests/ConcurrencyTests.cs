using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

[Trait("cell", "race")]
public class ConcurrencyTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode> Costly => [.. Modes.Costly];

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_second_read_is_refused_and_the_first_goes_on(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        byte[] buffer = new byte[10];
        Task<int> first = pair.Server.ReadAsync(buffer).AsTask();

        await Assert.ThrowsAsync<NotSupportedException>(() => pair.Server.ReadAsync(new byte[1]).InTime());
        await Assert.ThrowsAsync<NotSupportedException>(() => pair.Server.ReadAsync(Memory<byte>.Empty).InTime());
        await Assert.ThrowsAsync<NotSupportedException>(
            () => Limits.Blocking(() => pair.Server.Read(new byte[1])).InTime());

        await pair.Client.WriteAsync(new byte[] { 42 }).InTime();
        Assert.Equal(1, await first.InTime());
        Assert.Equal(42, buffer[0]);
    }

    /// <summary>
    /// A read that begins while another one completes is either refused or is the next one. Both receive their data.
    /// </summary>
    [Theory]
    [MemberData(nameof(Costly))]
    public async Task A_second_read_may_come_at_the_moment_the_first_completes(TlsMode mode)
    {
        int rounds = Cell.IsLab ? 300 : 5000;
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
        for (int i = 0; i < rounds; i++)
        {
            byte[] one = new byte[1];
            byte[] other = new byte[1];
            Task<int> first = pair.Server.ReadAsync(one).AsTask();
            await pair.Client.WriteAsync(new byte[] { (byte)i }).InTime();
            Task<int> second = await Limits.Blocking(() => ReadOnceAllowed(pair.Server, other)).InTime("a read to be allowed");
            await pair.Client.WriteAsync(new byte[] { (byte)~i }).InTime();

            Assert.Equal(1, await first.InTime($"the first read of round {i}"));
            Assert.Equal(1, await second.InTime($"the second read of round {i}"));
            Assert.Equal(((byte)i, (byte)~i), (one[0], other[0]));
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_second_write_is_refused_and_the_first_goes_on(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ShrinkBuffers();
        const int Size = TlsPair.MoreThanFits;
        Task first = pair.Client.WriteAsync(new byte[Size]).AsTask();
        await first.StaysPending();

        await Assert.ThrowsAsync<NotSupportedException>(() => pair.Client.WriteAsync(new byte[1]).InTime());
        await Assert.ThrowsAsync<NotSupportedException>(
            () => Limits.Blocking(() => pair.Client.Write(new byte[1])).InTime());

        byte[] buffer = new byte[1 << 20];
        long received = 0;
        while (received < Size)
        {
            int read = await pair.Server.ReadAsync(buffer).InTime();
            Assert.NotEqual(0, read);
            Assert.False(buffer.AsSpan(0, read).ContainsAnyExcept((byte)0));
            received += read;
        }

        Assert.Equal(Size, received);
        await first.InTime();
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Both_ends_read_and_write_at_once(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        const int Size = 3_000_000;

        await Task.WhenAll(
            Pattern.SendAsync(pair.Client, Size, chunk: 50_000),
            Pattern.SendAsync(pair.Server, Size, chunk: 3_333),
            Pattern.ReceiveAsync(pair.Client, Size, buffer: 20_000),
            Pattern.ReceiveAsync(pair.Server, Size, buffer: 70_000)).InTime();

        Assert.Equal(0, pair.ClientSocket.Available);
        Assert.Equal(0, pair.ServerSocket.Available);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_blocking_read_does_not_keep_a_write_from_going_out(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        byte[] answer = new byte[4];
        Task<int> reading = Limits.Blocking(() => pair.Client.Read(answer, 0, 4));
        await reading.StaysPending();

        await Limits.Blocking(() => pair.Client.Write("ping"u8)).InTime();
        byte[] question = new byte[4];
        await pair.Server.ReadExactlyAsync(question).InTime();
        await pair.Server.WriteAsync(question).InTime();

        Assert.Equal(4, await reading.InTime());
        Assert.Equal("ping"u8.ToArray(), answer);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_conversation_of_small_messages_goes_on(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        byte[] question = new byte[64];
        byte[] answer = new byte[64];
        for (int i = 0; i < 200; i++)
        {
            Pattern.Take(64, i * 64).CopyTo(question, 0);
            await pair.Client.WriteAsync(question).InTime();
            await pair.Server.ReadExactlyAsync(answer).InTime();
            await pair.Server.WriteAsync(answer).InTime();
            await pair.Client.ReadExactlyAsync(answer).InTime();
            Assert.Equal(question, answer);
        }
    }

    /// <summary>
    /// Tries until the previous read has ended. The refusal may be thrown synchronously or by the task.
    /// </summary>
    private static Task<int> ReadOnceAllowed(SslStream stream, byte[] buffer)
    {
        for (long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds; Environment.TickCount64 < deadline;)
        {
            try
            {
                Task<int> reading = stream.ReadAsync(buffer).AsTask();
                if (reading.Exception?.InnerException is not NotSupportedException)
                {
                    return reading;
                }
            }
            catch (NotSupportedException)
            {
                // The first read is still pending.
            }
        }

        throw new TimeoutException("The previous read did not end.");
    }
}
