using System.IO.Pipelines;
using KernelTls.AspNetCore.Tls;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests that data flushed during a send, or before its turn, is sent together, and the possible failures.
/// </summary>
[Trait("cell", "race")]
public class GatheringTests
{
    private const int Small = 20;

    public static TheoryData<TlsMode> All => [.. Modes.Every.Where(m => m != TlsMode.Stock)];

    public static TheoryData<TlsMode, long> Thresholds =>
    [
        .. Modes.Every.Where(m => m != TlsMode.Stock).Select(m => new TheoryDataRow<TlsMode, long>(m, PipeOutput.PauseThreshold)),
        .. Modes.Every.Where(m => m != TlsMode.Stock).Select(m => new TheoryDataRow<TlsMode, long>(m, -1)),
    ];

    /// <summary>As with one request after the other: a flush does not wait for a turn.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_flush_by_itself_is_sent_before_it_returns(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        for (int i = 0; i < 200; i++)
        {
            output.Writer.OnReceived();
            output.Write(i * Small, Small);
            Assert.Null(output.Flush());
            Assert.Equal(0, output.Pool.Rented);
        }

        await Pattern.ReceiveAsync(output.Client, 200 * Small).InTime();
    }

    /// <summary>The application may be busy for a long time after a flush: another thread sends the data.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_flush_that_waits_for_its_turn_is_sent_without_another(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        byte[] received = new byte[10 * Small];
        for (int i = 0; i < 200; i++)
        {
            output.Write(i * Small, Small);
            Assert.Null(output.Flush());
            if (i % 10 == 9)
            {
                // Those that gather do so by tens, and each time only the turn sends the last of them.
                await output.Client.ReadExactlyAsync(received).InTime();
                Pattern.AssertAt((i - 9) * Small, received);
            }
        }
    }

    /// <summary>Even if the socket takes everything at once, flushes in quick succession share records.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Flushes_close_together_share_records(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode, shrink: false);
        const int Bursts = 20;
        const int Flushes = 100;

        // The header, the type of the content, and the tag (RFC 8446, section 5.2).
        const int Overhead = 5 + 1 + 16;
        byte[] received = new byte[Flushes * Small];
        long before = output.ReceivedBySocket;
        for (int burst = 0; burst < Bursts; burst++)
        {
            for (int i = 0; i < Flushes; i++)
            {
                output.Write(((burst * Flushes) + i) * Small, Small);
                Assert.Null(output.Flush());
            }

            await output.Client.ReadExactlyAsync(received).InTime();
            Pattern.AssertAt(burst * Flushes * Small, received);
        }

        // How many share one depends on when their turn comes, and so on the machine: on a busy one a little more than half
        // of the flushes got a record. Without gathering each flush has one.
        long records = (output.ReceivedBySocket - before - (Bursts * Flushes * Small)) / Overhead;
        Assert.InRange(records, Bursts, Bursts * Flushes * 3 / 4);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Many_small_flushes_arrive_in_order(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        await output.SendAsync(1_000_000, factor: 7, modulus: 331);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Flushes_behind_a_send_share_their_blocks(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        int position = await output.FillAsync();
        int rented = output.Pool.Rented;
        const int Flushes = 200;
        for (int i = 0; i < Flushes; i++, position += Small)
        {
            output.Write(position, Small);
            Assert.Null(output.Flush());
        }

        Assert.Equal(rented + 1, output.Pool.Rented);
        await Pattern.ReceiveAsync(output.Client, position).InTime();
        await output.Writer.DrainAsync().InTime();
        Assert.Equal(0, output.Pool.Rented);
    }

    /// <summary>
    /// 64 KiB of flushed but unsent data is also the limit of the default transport, and the default of a pipe (-1).
    /// </summary>
    [Theory]
    [MemberData(nameof(Thresholds))]
    public async Task A_slow_reader_stops_the_flushes(TlsMode mode, long pauseThreshold)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode, pauseThreshold: pauseThreshold);
        int filled = await output.FillAsync();
        const int Step = 4_000;
        int position = filled;
        Task<FlushResult>? flushing;
        do
        {
            Assert.InRange(position - filled, 0, PipeOutput.PauseThreshold);
            output.Write(position, Step);
            position += Step;
            flushing = output.Flush();
        }
        while (flushing is null);

        Assert.InRange(position - filled, PipeOutput.PauseThreshold - PipeOutput.FillStep - Step, PipeOutput.PauseThreshold + Step);
        await flushing.StaysPending();

        await Pattern.ReceiveAsync(output.Client, position).InTime();

        Assert.False((await flushing.InTime()).IsCanceled);
    }

    /// <summary>A file may be closed or be too short: its flush completes when it is sent.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_file_behind_gathered_flushes_keeps_its_place_and_its_flush_waits(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        int position = await output.FillAsync();
        const int Length = 10_000;
        using PatternFile file = new(position + Length + (2 * Small));
        output.Write(position, Small);
        Assert.Null(output.Flush());
        position += Small;

        output.Writer.Announce(new FilePlaceholder(file.Handle, position, Length, ownsFile: false));
        output.Writer.GetMemory();
        output.Writer.Advance(Length);
        position += Length;
        output.Write(position, Small);
        position += Small;
        Task<FlushResult> flushing = output.Writer.FlushAsync().AsTask();
        await flushing.StaysPending();

        await Pattern.ReceiveAsync(output.Client, position).InTime();

        Assert.False((await flushing.InTime()).IsCompleted);
        Assert.Empty(output.Failures);
    }

    /// <summary>
    /// A request for the client's certificate needs the stream exclusively, and flushes have returned by then.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task What_was_flushed_can_be_waited_for(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        await output.Writer.SendQueuedAsync().InTime();
        int position = await output.FillAsync();
        output.Write(position, Small);
        Assert.Null(output.Flush());
        Task sending = output.Writer.SendQueuedAsync();
        await sending.StaysPending();

        await Pattern.ReceiveAsync(output.Client, position + Small).InTime();

        await sending.InTime();
        Assert.Equal(0, output.Pool.Rented);
        await output.Writer.SendQueuedAsync().InTime();
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Closing_sends_what_has_gathered(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        int position = await output.FillAsync();
        output.Write(position, 3 * Small);
        Assert.Null(output.Flush());
        output.Write(position + (3 * Small), Small);

        Task draining = output.Writer.DrainAsync();
        await draining.StaysPending();
        await Pattern.ReceiveAsync(output.Client, position + (4 * Small)).InTime();

        await draining.InTime();
        Assert.Equal(0, output.Pool.Rented);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task An_abort_drops_what_has_gathered_and_is_told_once(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        int position = await output.FillAsync();
        output.Write(position, Small);
        Assert.Null(output.Flush());

        await output.AbortAsync().InTime();

        await output.Writer.DrainAsync().InTime();
        Assert.Single(output.Failures);
        Assert.True((await output.Writer.FlushAsync().InTime()).IsCompleted);
        Assert.Single(output.Failures);
        Assert.Equal(0, output.Pool.Rented);
    }

    /// <summary>
    /// The flush had returned. The next one reports the failure, as on a pipe whose reader has completed.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_gathered_send_that_fails_is_told_by_the_next_flush(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        await output.FillAsync();
        output.ClientSocketClose();
        await output.Failed.InTime();

        output.Write(0, Small);
        Assert.True((await output.Writer.FlushAsync().InTime()).IsCompleted);
        output.Write(0, Small);
        Assert.True((await output.Writer.FlushAsync().InTime()).IsCompleted);
        Assert.IsAssignableFrom<IOException>(Assert.Single(output.Failures));
        await output.Writer.DrainAsync().InTime();
        Assert.Equal(0, output.Pool.Rented);
    }

    /// <summary>The callback that resumes the flush may run while the next data is being sent.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_flush_that_resumes_may_be_followed_at_once(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        await output.SendAsync(20_000_000, factor: 11, modulus: 40_000);
    }
}
