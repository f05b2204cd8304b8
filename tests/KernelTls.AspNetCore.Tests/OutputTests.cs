using System.Buffers;
using System.IO.Pipelines;
using System.Net.Security;
using System.Security.Authentication;
using KernelTls.AspNetCore.Tls;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests the pipe writer over the TLS stream.</summary>
public class OutputTests
{
    public static TheoryData<TlsMode> All => [.. Modes.Every.Where(m => m != TlsMode.Stock)];

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_response_of_many_segments_fills_its_records(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode);
        await using RecordMeter meter = new(await server.ConnectSocketAsync());
        await using SslStream client = new(meter);
        await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)).InTime();
        await client.WriteAsync("GET /bytes/65536 HTTP/1.1\r\nHost: localhost\r\n\r\n"u8.ToArray()).InTime();

        byte[] answer = new byte[65_536];
        await client.ReadExactlyAsync(answer).InTime();

        // The stock server creates seventeen records of 4 KiB for this.
        Assert.InRange(meter.Records.Count(r => r > 16_384), 3, 4);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task What_is_flushed_arrives_in_order(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        await output.SendAsync(3_000_000, factor: 7, modulus: 50_000);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_flush_waits_for_a_reader_that_does_not_read(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        output.Write(0, TlsPair.MoreThanFits);
        Assert.Equal(TlsPair.MoreThanFits, output.Writer.UnflushedBytes);
        Task<FlushResult> flushing = output.Writer.FlushAsync().AsTask();
        await flushing.StaysPending();

        await Pattern.ReceiveAsync(output.Client, TlsPair.MoreThanFits).InTime();

        FlushResult result = await flushing.InTime();
        Assert.False(result.IsCanceled || result.IsCompleted);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_cancelled_flush_loses_nothing(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        using CancellationTokenSource cancellation = new();
        output.Write(0, TlsPair.MoreThanFits);
        Task<FlushResult> first = output.Writer.FlushAsync().AsTask();
        await first.StaysPending();

        output.Writer.CancelPendingFlush();
        Assert.True((await first.InTime()).IsCanceled);

        output.Write(TlsPair.MoreThanFits, 1_000_000);
        Task<FlushResult> second = output.Writer.FlushAsync(cancellation.Token).AsTask();
        await second.StaysPending();
        await cancellation.CancelAsync();
        await Assert.ThrowsAsync<OperationCanceledException>(() => second.InTime());

        output.Write(TlsPair.MoreThanFits + 1_000_000, 500_000);
        Task<FlushResult> third = output.Writer.FlushAsync().AsTask();
        await Pattern.ReceiveAsync(output.Client, TlsPair.MoreThanFits + 1_500_000).InTime();
        Assert.False((await third.InTime()).IsCanceled);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Cancelling_without_a_flush_cancels_the_next(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        output.Write(0, 1_000);
        output.Writer.CancelPendingFlush();

        Assert.True((await output.Writer.FlushAsync().InTime()).IsCanceled);
        Assert.False((await output.Writer.FlushAsync().InTime()).IsCanceled);
        await Pattern.ReceiveAsync(output.Client, 1_000).InTime();
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_failed_write_is_told_once_and_completes_every_flush(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        output.ClientSocketClose();
        FlushResult result = default;
        for (int i = 0; i < 100 && !result.IsCompleted; i++)
        {
            output.Write(0, 100_000);
            result = await output.Writer.FlushAsync().InTime();
        }

        Assert.True(result.IsCompleted);
        Assert.IsAssignableFrom<IOException>(Assert.Single(output.Failures));
        output.Write(0, 10);
        Assert.True((await output.Writer.FlushAsync().InTime()).IsCompleted);
        Assert.Single(output.Failures);
        await output.Writer.DrainAsync().InTime();
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Completing_sends_what_is_left_unless_there_is_an_exception(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        output.Write(0, 10_000);
        output.Writer.Complete();
        await output.Writer.DrainAsync().InTime();
        await Pattern.ReceiveAsync(output.Client, 10_000).InTime();
        Assert.Throws<InvalidOperationException>(() => output.Writer.GetMemory());

        await using PipeOutput failed = await PipeOutput.CreateAsync(mode);
        failed.Write(0, 10_000);
        failed.Writer.Complete(new InvalidOperationException());
        await failed.Writer.DrainAsync().InTime();
        await failed.Client.ReadAsync(new byte[1]).AsTask().StaysPending();
        Assert.Equal(0, failed.Pool.Rented);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Large_hints_get_what_they_ask_for(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode);
        Memory<byte> large = output.Writer.GetMemory(100_000);
        Assert.True(large.Length >= 100_000);
        Pattern.Take(100_000).CopyTo(large);
        output.Writer.Advance(100_000);
        Assert.Throws<ArgumentOutOfRangeException>(() => output.Writer.Advance(int.MaxValue));

        await output.Writer.FlushAsync().InTime();

        await Pattern.ReceiveAsync(output.Client, 100_000).InTime();
        Assert.Equal(0, output.Pool.Rented);
    }

    /// <summary>
    /// Memory comes from the pool and is returned, and a response that need not wait allocates nothing.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_response_allocates_nothing(TlsMode mode)
    {
        await using PipeOutput output = await PipeOutput.CreateAsync(mode, shrink: false);
        const int Warming = 400;
        const int Rounds = 200;
        const int Size = 20_000;
        byte[] received = new byte[Size];
        List<long> allocations = [];
        for (int round = 0; round < Warming + Rounds; round++)
        {
            long allocated = output.AllocatedByResponse(Size);
            await output.Client.ReadExactlyAsync(received).InTime();
            if (round >= Warming && allocated != 0)
            {
                allocations.Add(allocated);
            }
        }

        // Continuations run on any thread of the pool. One-time allocations of a thread do not count for a response.
        Assert.True(allocations.Count < Rounds / 20, $"Bytes, in {allocations.Count} of {Rounds}: {string.Join(", ", allocations)}.");
        Assert.Equal(0, output.Pool.Rented);
        Assert.True(output.Pool.MaxRented >= Size / TlsPipeWriter.BlockSize);
    }
}
