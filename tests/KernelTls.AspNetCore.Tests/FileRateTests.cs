using System.Net.Security;
using KernelTls.AspNetCore.Tls;
using KernelTls.Tests;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests Kestrel's minimum data rate of responses (MinResponseDataRate) with files.</summary>
public class FileRateTests
{
    public static TheoryData<TlsMode> All => FileFailureTests.All;

    [Theory]
    [MemberData(nameof(All))]
    public async Task Too_slow_a_reader_is_cut_off(TlsMode mode)
    {
        using PatternFile file = FileFailureTests.Sparse(FileFailureTests.Large);
        await using Server server = await FileFailureTests.StartAsync(
            mode,
            FileFailureTests.Sending(file, FileFailureTests.Large),
            new MinDataRate(bytesPerSecond: 1_000_000, gracePeriod: TimeSpan.FromSeconds(1.1)));
        await using SslStream client = await FileFailureTests.SendRequestAsync(server);

        await server.Events.WaitForAsync(e => e.Id.Name == "ResponseMinimumDataRateNotSatisfied", "Kestrel to lose patience");
        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", "the connection to stop");
        await FileFailureTests.UntilClosedAsync(file);
    }

    /// <summary>A part takes longer than the grace period, but the reader is fast enough.</summary>
    [Theory]
    [MemberData(nameof(All))]
    [Trait("waits", "mostly")]
    public async Task A_reader_at_the_rate_gets_its_file(TlsMode mode)
    {
        const int Size = 3 * ResponseFiles.PartSize;
        const int Piece = 32 * 1024;
        using PatternFile file = new(Size);
        await using Server server = await FileFailureTests.StartAsync(
            mode,
            FileFailureTests.Sending(file, Size),
            new MinDataRate(bytesPerSecond: 200_000, gracePeriod: TimeSpan.FromSeconds(1.1)));
        await using SslStream client = await FileFailureTests.SendRequestAsync(server);
        using PeriodicTimer timer = new(TimeSpan.FromMilliseconds(100));
        byte[] body = new byte[Size];
        for (int read = 0; read < Size; read += Piece)
        {
            await timer.WaitForNextTickAsync();
            await client.ReadExactlyAsync(body.AsMemory(read, Piece)).InTime();
        }

        Pattern.AssertAt(0, body);
        Assert.DoesNotContain(server.Events.Entries, e => e.Level > LogLevel.Information);
    }

    /// <summary>What a reader has read faster than it must, it may read more slowly later.</summary>
    [Theory]
    [MemberData(nameof(All))]
    [Trait("loop", "outer")]
    [Trait("waits", "mostly")]
    public Task A_reader_that_was_fast_may_pause(TlsMode mode) => SideBySide.RunAsync(mode, async m =>
    {
        const int Size = 24 * ResponseFiles.PartSize;
        using PatternFile file = new(Size);
        await using Server server = await FileFailureTests.StartAsync(
            m,
            FileFailureTests.Sending(file, Size),
            new MinDataRate(bytesPerSecond: 1_000_000, gracePeriod: TimeSpan.FromSeconds(1.1)));
        await using SslStream client = await FileFailureTests.SendRequestAsync(server);
        byte[] body = new byte[Size];
        await client.ReadExactlyAsync(body.AsMemory(0, Size / 2)).InTime("the first half");

        // The first half has earned 12 s, less what it took. The rest is more than the buffers of both ends take.
        await Task.Delay(TimeSpan.FromSeconds(6));
        await client.ReadExactlyAsync(body.AsMemory(Size / 2)).InTime("the second half");

        Pattern.AssertAt(0, body);
        return string.Join(", ", server.Events.Entries.Where(e => e.Level > LogLevel.Information));
    });

    [Fact]
    public void Time_that_a_part_does_not_use_is_not_lost()
    {
        MinDataRate rate = new(bytesPerSecond: 1000, gracePeriod: TimeSpan.FromSeconds(2));
        TimeSpan first = ResponseFiles.DueTime(rate, 5000, TimeSpan.Zero, Seconds(100));
        Assert.Equal(Seconds(107), first);
        Assert.Equal(Seconds(112), ResponseFiles.DueTime(rate, 5000, first, Seconds(100.5)));
        Assert.Equal(Seconds(207), ResponseFiles.DueTime(rate, 5000, first, Seconds(200)));

        MinDataRate slow = new(bytesPerSecond: double.Epsilon, gracePeriod: TimeSpan.MaxValue);
        TimeSpan never = ResponseFiles.DueTime(slow, 5000, TimeSpan.Zero, Seconds(100));
        Assert.Equal(Seconds(100 + (double)int.MaxValue), never);
        Assert.Equal(Seconds(101 + (double)int.MaxValue), ResponseFiles.DueTime(slow, 5000, never, Seconds(101)));

        static TimeSpan Seconds(double count) => TimeSpan.FromSeconds(count);
    }
}
