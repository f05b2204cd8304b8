using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests key changes of this end: requested by UpdateSendKeyAsync, or because a key has reached its record limit.
/// </summary>
public class KeyChangeTests
{
    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    /// <summary>
    /// Gets the modes that can change keys. If a run is limited to a kernel that cannot, OpenSSL is used instead.
    /// </summary>
    public static IEnumerable<TlsMode> ChangingModes => Modes.OnOpenSsl.Where(CanChange).DefaultIfEmpty(TlsMode.DirectOpenSsl);

    public static TheoryData<TlsMode> Changing => [.. ChangingModes];

    public static TheoryData<TlsMode, bool> Requests =>
    [
        .. Modes.OnOpenSsl.Select(m => new TheoryDataRow<TlsMode, bool>(m, false)),
        .. Modes.OnOpenSsl.Select(m => new TheoryDataRow<TlsMode, bool>(m, true)),
    ];

    public static TheoryData<TlsMode, SslProtocols> Versions => Modes.AllOnOpenSsl;

    [Theory]
    [Trait("Pitfall", "2")]
    [MemberData(nameof(Requests))]
    public async Task Keys_change_in_the_midst_of_data_both_ways(TlsMode mode, bool requestPeer)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
        KtlsStream client = (KtlsStream)pair.Client;
        if (!CanChange(mode))
        {
            await AssertRefusedAsync(client, requestPeer);
            await ExchangeAsync(pair);
            return;
        }

        TlsStatistics before = Statistics(mode);
        const int Updates = 10;
        const int Size = 2_000_000;
        Task[] data =
        [
            Pattern.SendAsync(pair.Client, Size, chunk: 30_000), Pattern.ReceiveAsync(pair.Server, Size),
            Pattern.SendAsync(pair.Server, Size, chunk: 1_000), Pattern.ReceiveAsync(pair.Client, Size),
        ];
        for (int i = 0; i < Updates; i++)
        {
            await client.UpdateSendKeyAsync(requestPeer).InTime($"key update {i}");
        }

        await Task.WhenAll(data).InTime("data both ways");
        await ExchangeAsync(pair);
        if (mode == TlsMode.Kernel)
        {
            // The peer may answer several requests at once (RFC 8446, section 4.6.3).
            TlsStatistics after = Statistics(mode);
            Assert.InRange(after.SendRekeyOk - before.SendRekeyOk, requestPeer ? Updates + 1 : Updates, requestPeer ? 2 * Updates : Updates);
            Assert.Equal(after.SendRekeyOk - before.SendRekeyOk, after.ReceiveRekeyOk - before.ReceiveRekeyOk);
        }
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task TLS_1_2_has_no_key_updates_and_goes_on(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls12);

        await AssertRefusedAsync((KtlsStream)pair.Client, requestPeer: false);

        await ExchangeAsync(pair);
    }

    [Theory]
    [InlineData(SslProtocols.Tls12)]
    [InlineData(SslProtocols.Tls13)]
    public async Task SslStream_has_no_key_updates_and_goes_on(SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(TlsMode.Managed, version);

        await Assert.ThrowsAsync<NotSupportedException>(() => ((KtlsStream)pair.Client).UpdateSendKeyAsync(true).InTime());

        await ExchangeAsync(pair);
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Keys_change_only_on_an_open_connection(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.CreateAsync(mode, mode);
        KtlsStream client = (KtlsStream)pair.Client;
        await Assert.ThrowsAsync<InvalidOperationException>(() => client.UpdateSendKeyAsync(false).InTime());
        await Task.WhenAll(
            client.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)),
            pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.Tls13))).InTime();

        await client.ShutdownAsync().InTime();
        await Assert.ThrowsAsync<InvalidOperationException>(() => client.UpdateSendKeyAsync(false).InTime());
        await client.DisposeAsync();
        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await client.UpdateSendKeyAsync(false));
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_change_waits_for_the_write_in_progress_and_can_be_cancelled_until_then(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
        KtlsStream client = (KtlsStream)pair.Client;
        pair.ShrinkBuffers();
        Task writing = client.WriteAsync(Pattern.Take(TlsPair.MoreThanFits)).AsTask();
        using CancellationTokenSource source = new();
        Task cancelled = client.UpdateSendKeyAsync(false, source.Token).AsTask();
        Task waiting = client.UpdateSendKeyAsync(false).AsTask();
        await waiting.StaysPending();

        await source.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => cancelled.InTime());
        await Pattern.ReceiveAsync(pair.Server, TlsPair.MoreThanFits).InTime();

        await writing.InTime();
        if (CanChange(mode))
        {
            await waiting.InTime();
        }
        else
        {
            await Assert.ThrowsAsync<KtlsRekeyException>(() => waiting.InTime());
        }

        await ExchangeAsync(pair);
    }

    /// <summary>
    /// OpenSSL would answer the first request when it reads the second one: in the middle of data that is being sent
    /// under the old key, and into a socket without space.
    /// </summary>
    [Theory]
    [Trait("Pitfall", "3")]
    [MemberData(nameof(Changing))]
    public async Task Requests_during_a_write_hold_up_no_read_and_are_answered_within_the_write(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
        KtlsStream client = (KtlsStream)pair.Client;
        await pair.Server.WriteAsync(new byte[1]);
        await pair.Client.ReadExactlyAsync(new byte[1]);
        pair.ShrinkBuffers();
        Task writing = pair.Server.WriteAsync(Pattern.Take(TlsPair.MoreThanFits)).AsTask();
        await writing.StaysPending();

        for (int i = 0; i < 3; i++)
        {
            await client.UpdateSendKeyAsync(requestPeerUpdate: i < 2).AsTask().InTime("a key update");
        }

        await client.WriteAsync(new byte[] { 42 }).AsTask().InTime("a byte behind the key updates");
        byte[] received = new byte[1];
        await pair.Server.ReadExactlyAsync(received).AsTask().InTime("the byte, while nobody reads what the server sends");
        Assert.Equal(42, received[0]);
        Assert.False(writing.IsCompleted);

        await Pattern.ReceiveAsync(pair.Client, TlsPair.MoreThanFits).InTime("what the server sends");
        await writing.InTime("the server's write to end");
        await pair.ExchangeAsync();
    }

    /// <summary>
    /// An application that only sends reads no KeyUpdate. Its peer would repeat its request with each record it
    /// receives, and receive more and more data under one key.
    /// </summary>
    [Theory]
    [Trait("Pitfall", "3")]
    [MemberData(nameof(Changing))]
    public async Task A_request_is_answered_while_this_end_only_sends(TlsMode mode)
    {
        const int Size = 4 << 20;
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
        using AnswerCount answers = new();
        await ((KtlsStream)pair.Client).UpdateSendKeyAsync(requestPeerUpdate: true).InTime();

        Task received = Pattern.ReceiveAsync(pair.Client, Size);
        await Pattern.SendAsync(pair.Server, Size, chunk: 100_000).InTime("sending");
        await received.InTime("what was sent");

        Assert.Equal(1, answers.Count);
        await ExchangeAsync(pair);
    }

    /// <summary>A read may begin at any time, even while the sending half processes control records.</summary>
    [Theory]
    [MemberData(nameof(Changing))]
    public async Task Reads_begin_and_end_while_this_end_sends_and_is_asked_for_keys(TlsMode mode)
    {
        const int Rounds = 100;
        const int Answer = 200_000;
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
        Task sending = Pattern.SendAsync(pair.Server, (long)Rounds * Answer);
        Task asking = Task.Run(async () =>
        {
            for (int i = 0; i < Rounds; i++)
            {
                await ((KtlsStream)pair.Client).UpdateSendKeyAsync(requestPeerUpdate: true);
                await pair.Client.WriteAsync(Pattern.At(i, 1));
                await Task.Yield();
            }
        });
        Task answered = Pattern.ReceiveAsync(pair.Client, (long)Rounds * Answer);

        for (int i = 0; i < Rounds; i++)
        {
            await Pattern.ReceiveAsync(pair.Server, 1, position: i).InTime($"byte {i}");
            await Task.Yield();
        }

        await asking.InTime("the key updates");
        await Task.WhenAll(sending, answered).InTime("what the server sends");
        await ExchangeAsync(pair);
    }

    [Theory]
    [Trait("Pitfall", "22")]
    [MemberData(nameof(Versions))]
    public async Task So_many_records_and_the_key_changes_or_the_sending_half_ends(TlsMode mode, SslProtocols version)
    {
        const int Limit = 5;
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version, tune: o => o.RecordLimit = Limit);
        TlsStatistics before = Statistics(mode);
        if (version == SslProtocols.Tls13 && CanChange(mode))
        {
            await WriteAsync(pair, count: 18);

            // After records 5, 10 and 15.
            AssertChanges(mode, before, 3);
            return;
        }

        await WriteAsync(pair, count: Limit);
        for (int again = 0; again < 2; again++)
        {
            KtlsRekeyException e = await Assert.ThrowsAsync<KtlsRekeyException>(() => pair.Client.WriteAsync(new byte[1]).InTime());
            Assert.Equal(KtlsRekeyFailure.RecordLimit, e.Failure);
        }

        Assert.Equal(KtlsRekeyFailure.RecordLimit, Assert.Throws<KtlsRekeyException>(() => pair.Client.WriteByte(1)).Failure);

        // The peer sees a clean end, and the other half stays open.
        Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime());
        await pair.Server.WriteAsync(Pattern.At(0, 100)).InTime();
        await Pattern.ReceiveAsync(pair.Client, 100).InTime();
    }

    [Theory]
    [MemberData(nameof(Changing))]
    public async Task A_write_larger_than_the_limit_is_spread_over_keys(TlsMode mode)
    {
        const int Limit = 10;
        const int Record = 16_384;
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13, tune: o => o.RecordLimit = Limit);
        KtlsStream client = (KtlsStream)pair.Client;
        TlsStatistics before = Statistics(mode);
        byte[] data = Pattern.Take(64 * Record);

        // 64 records: the keys after the first are used for 54 of them.
        Task receiving = Pattern.ReceiveAsync(pair.Server, data.Length);
        await client.WriteAsync(data).InTime();
        await receiving.InTime();
        AssertChanges(mode, before, 6);

        before = Statistics(mode);
        receiving = Pattern.ReceiveAsync(pair.Server, data.Length);
        await Limits.Blocking(() => client.Write(data)).InTime();
        await receiving.InTime();

        // 6 records remain of the last key.
        AssertChanges(mode, before, 6);
    }

    [Fact]
    public void A_limit_below_one_is_refused()
    {
        KtlsOptions options = new();
        Assert.Null(options.RecordLimit);
        Assert.Throws<ArgumentOutOfRangeException>(() => options.RecordLimit = 0);
        options.RecordLimit = 1;
        Assert.Equal(1, options.RecordLimit);
        options.RecordLimit = null;
    }

    internal static bool CanChange(TlsMode mode) => mode == TlsMode.DirectOpenSsl || KtlsPlatform.Probe().CanRekey;

    internal static TlsStatistics Statistics(TlsMode mode) => mode == TlsMode.Kernel ? TlsStatistics.Read() : default;

    /// <summary>
    /// Asserts the number of changes. The kernel counts each change once per end; without it, only the arrival of the
    /// data can be observed.
    /// </summary>
    private static void AssertChanges(TlsMode mode, TlsStatistics before, int expected)
    {
        if (mode == TlsMode.Kernel)
        {
            TlsStatistics after = TlsStatistics.Read();
            Assert.Equal(expected, after.SendRekeyOk - before.SendRekeyOk);
            Assert.Equal(expected, after.ReceiveRekeyOk - before.ReceiveRekeyOk);
        }
    }

    private static async Task AssertRefusedAsync(KtlsStream stream, bool requestPeer)
    {
        KtlsRekeyException e = await Assert.ThrowsAsync<KtlsRekeyException>(() => stream.UpdateSendKeyAsync(requestPeer).InTime());
        Assert.Equal(KtlsRekeyFailure.NotSupported, e.Failure);
    }

    private static async Task WriteAsync(TlsPair pair, int count)
    {
        const int Size = 1_000;
        for (int i = 0; i < count; i++)
        {
            await pair.Client.WriteAsync(Pattern.At(i * Size, Size)).InTime();
        }

        await Pattern.ReceiveAsync(pair.Server, count * Size).InTime();
    }

    private static async Task ExchangeAsync(TlsPair pair)
    {
        await pair.Client.WriteAsync(Pattern.At(0, 100)).InTime();
        await Pattern.ReceiveAsync(pair.Server, 100).InTime();
        await pair.Server.WriteAsync(Pattern.At(0, 100)).InTime();
        await Pattern.ReceiveAsync(pair.Client, 100).InTime();
    }
}
