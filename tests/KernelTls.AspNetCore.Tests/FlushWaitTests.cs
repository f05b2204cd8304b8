using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using KernelTls.AspNetCore.Tls;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests flushes that wait until enough is sent, and the other events that end the wait.</summary>
[Trait("loop", "outer-kernel")]
public class FlushWaitTests
{
    private const int Small = 20;

    public static TheoryData<TlsMode> All => [.. Modes.Every.Where(m => m != TlsMode.Stock)];

    public static TheoryData<TlsMode, bool> Either =>
    [
        .. Modes.Every.Where(m => m != TlsMode.Stock).Select(m => new TheoryDataRow<TlsMode, bool>(m, false)),
        .. Modes.Every.Where(m => m != TlsMode.Stock).Select(m => new TheoryDataRow<TlsMode, bool>(m, true)),
    ];

    /// <summary>The flush has begun, and the canceling caller does not know that it is not waiting yet.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_flush_can_be_cancelled_while_it_sends(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        output.Write(0, TlsPair.MoreThanFits);
        output.Pool.WhenRead(output.Writer.CancelPendingFlush);

        Assert.True((await output.Writer.FlushAsync().InTime()).IsCanceled);

        output.Write(TlsPair.MoreThanFits, Small);
        Task<FlushResult> next = output.Writer.FlushAsync().AsTask();
        await next.StaysPending();
        await Pattern.ReceiveAsync(output.Client, TlsPair.MoreThanFits + Small).InTime();
        Assert.False((await next.InTime()).IsCanceled);
    }

    /// <summary>Half of one byte is no threshold to resume below.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Where_a_flush_waits_for_every_byte_it_waits_no_longer(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode, pauseThreshold: 1);
        output.Write(0, TlsPair.MoreThanFits);
        Task<FlushResult> flushing = output.Writer.FlushAsync().AsTask();
        await flushing.StaysPending();

        await Pattern.ReceiveAsync(output.Client, TlsPair.MoreThanFits).InTime();

        Assert.False((await flushing.InTime()).IsCanceled);
        for (int i = 0; i < 10; i++)
        {
            output.Write(i * Small, Small);
            await output.Writer.FlushAsync().InTime($"flush {i}, which the reader does not hold up");
        }

        await Pattern.ReceiveAsync(output.Client, 10 * Small).InTime();
    }

    /// <summary>Data that waited for its turn is dropped: by the turn, or by a caller that sends it at once.</summary>
    [Theory]
    [MemberData(nameof(Either))]
    public async Task A_broken_connection_ends_a_flush_that_waits_for_its_turn(TlsMode mode, bool byTurn)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode, pauseThreshold: 1);
        output.Write(0, Small);
        Assert.Null(output.Flush());
        Task<FlushResult> flushing;
        Task sending;
        lock (LockOf(output.Writer))
        {
            // The turn has to wait during this.
            output.Write(Small, Small);
            flushing = output.Writer.FlushAsync().AsTask();
            output.Writer.Break(new IOException());
            sending = byTurn ? Task.CompletedTask : output.Writer.SendQueuedAsync();
        }

        FlushResult result = await flushing.InTime("the flush on the broken connection");
        Assert.True(result is { IsCompleted: true, IsCanceled: false });
        await sending.InTime();
        Assert.Single(output.Failures);
        await output.Writer.DrainAsync().InTime();
        Assert.Equal(0, output.Pool.Rented);
    }

    /// <summary>Kestrel ends the connection then, and does not process another request.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_flush_reports_that_its_own_send_has_failed(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        await output.AbortAsync().InTime();
        output.Writer.OnReceived();
        output.Write(0, Small);

        FlushResult result = await output.Writer.FlushAsync().InTime();

        Assert.True(result is { IsCompleted: true, IsCanceled: false });
        Assert.Single(output.Failures);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_waiting_flush_ends_when_its_send_fails(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        output.Write(0, TlsPair.MoreThanFits);
        Task<FlushResult> flushing = output.Writer.FlushAsync().AsTask();
        await flushing.StaysPending();
        output.Write(TlsPair.MoreThanFits, Small);

        output.ClientSocketClose();

        FlushResult result = await flushing.InTime("the flush whose client is gone");
        Assert.True(result is { IsCompleted: true, IsCanceled: false });
        await output.Failed.InTime();
        Assert.Single(output.Failures);
        await output.Writer.DrainAsync().InTime();
        Assert.Equal(0, output.Pool.Rented);
    }

    /// <summary>Kestrel's application may continue to write while a flush waits, and complete.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Closing_sends_what_was_written_while_a_flush_waits(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        output.Write(0, TlsPair.MoreThanFits);
        Task<FlushResult> flushing = output.Writer.FlushAsync().AsTask();
        await flushing.StaysPending();
        output.Write(TlsPair.MoreThanFits, Small);

        Task draining = output.Writer.DrainAsync();
        await Pattern.ReceiveAsync(output.Client, TlsPair.MoreThanFits + Small).InTime();

        await draining.InTime();
        Assert.False((await flushing.InTime()).IsCanceled);
        Assert.Equal(0, output.Pool.Rented);
    }

    /// <summary>A turn costs a thread switch, which a response need not wait for. Other flushes may share one.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task The_first_flush_after_data_was_received_is_sent_at_once(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        List<bool> atOnce = [];
        for (int i = 0; i < 6; i++)
        {
            if (i % 3 == 0)
            {
                output.Writer.OnReceived();
            }

            output.Write(i * Small, Small);
            lock (LockOf(output.Writer))
            {
                // A turn has to wait until this is known.
                Assert.Null(output.Flush());
                atOnce.Add(output.Pool.Rented == 0);
            }

            await Pattern.ReceiveAsync(output.Client, Small, position: i * Small).InTime($"flush {i}");
            await output.Writer.SendQueuedAsync().InTime();
        }

        Assert.Equal([true, false, false, true, false, false], atOnce);
    }

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_lock")]
    private static extern ref Lock LockOf(TlsPipeWriter writer);
}
