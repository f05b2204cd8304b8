using System.Buffers;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.ConformanceTests;

/// <summary>Tests that files arrive unchanged and in order with the writes around them.</summary>
public class SendFileTests
{
    private const int FileSize = 3_000_000;

    public static TheoryData<TlsMode, SslProtocols> All => Modes.AllOfKtlsStream;

    public static TheoryData<TlsMode, SslProtocols> OnOpenSsl => Modes.AllOnOpenSsl;

    [Theory]
    [MemberData(nameof(All))]
    public async Task Sections_of_every_size_arrive(TlsMode mode, SslProtocols version)
    {
        foreach (FileOptions options in new[] { FileOptions.None, FileOptions.Asynchronous })
        {
            using PatternFile file = new(FileSize, options: options);
            await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
            foreach ((int offset, int count) in new[]
            {
                (0, 0), (0, 1), (1, 16_383), (4_095, 16_384), (4_097, 16_385), (65_535, 65_537), (100_001, 1_500_000),
                (0, FileSize), (FileSize - 1, 1), (FileSize, 0), (FileSize + 1, 0),
            })
            {
                Task sending = Client(pair).SendFileAsync(file.Handle, offset, count).AsTask();
                byte[] received = new byte[count];
                await pair.Server.ReadExactlyAsync(received).InTime($"{count} bytes from {offset} on");
                await sending.InTime();
                Pattern.AssertAt(offset, received);
            }
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Sections_beyond_2_and_4_GiB_arrive(TlsMode mode, SslProtocols version)
    {
        const int Around = 100_000;
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        foreach (long bound in new[] { 1L << 31, 1L << 32 })
        {
            using PatternFile file = new(2 * Around, bound - Around);
            Task sending = Client(pair).SendFileAsync(file.Handle, bound - Around, 2 * Around).AsTask();
            byte[] received = new byte[2 * Around];
            await pair.Server.ReadExactlyAsync(received).InTime($"what is around byte {bound}");
            await sending.InTime();
            Pattern.AssertAt(bound - Around, received);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_section_of_more_than_2_GiB_can_be_sent(TlsMode mode, SslProtocols version)
    {
        using PatternFile file = new(FileSize, start: 5L << 30);
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        Task sending = Client(pair).SendFileAsync(file.Handle, 0, 5L << 30).AsTask();

        byte[] received = new byte[4 << 20];
        await pair.Server.ReadExactlyAsync(received).InTime();
        Assert.False(received.AsSpan().ContainsAnyExcept((byte)0));
        Assert.False(sending.IsCompleted);

        pair.Client.Dispose();
        await Assert.ThrowsAnyAsync<Exception>(() => sending.InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_file_keeps_its_place_among_writes(TlsMode mode, SslProtocols version)
    {
        using PatternFile file = new(FileSize);
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        KtlsStream client = Client(pair);
        Task sending = Task.Run(async () =>
        {
            for (int sent = 0; sent < FileSize;)
            {
                // 7 bytes written, a section, 7 bytes, nothing, 100,000 bytes, a section to the end.
                int section = sent < 20 ? 1_000_000 : FileSize - 1_100_014;
                await client.WriteAsync(Pattern.At(sent, 7));
                await client.SendFileAsync(file.Handle, sent + 7, section);
                sent += 7 + section;
                if (sent < FileSize)
                {
                    client.Write(Pattern.At(sent, 100_000).Span);
                    await client.SendFileAsync(file.Handle, 0, 0);
                    sent += 100_000;
                }
            }
        });

        await Pattern.ReceiveAsync(pair.Server, FileSize).InTime();
        await sending.InTime();
        Assert.Equal(0, pair.ServerSocket.Available);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_write_while_a_file_is_sent_is_refused_and_the_file_goes_on(TlsMode mode, SslProtocols version)
    {
        using PatternFile file = new(TlsPair.MoreThanFits);
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ShrinkBuffers();
        KtlsStream client = Client(pair);
        Task sending = client.SendFileAsync(file.Handle, 0, TlsPair.MoreThanFits).AsTask();
        await sending.StaysPending();

        await Assert.ThrowsAsync<NotSupportedException>(() => client.WriteAsync(new byte[1]).InTime());
        await Assert.ThrowsAsync<NotSupportedException>(() => client.WriteAsync(new ReadOnlySequence<byte>(new byte[1])).InTime());
        await Assert.ThrowsAsync<NotSupportedException>(() => Limits.Blocking(() => client.Write(new byte[1])).InTime());
        await Assert.ThrowsAsync<NotSupportedException>(() => client.SendFileAsync(file.Handle, 0, 1).InTime());

        await Pattern.ReceiveAsync(pair.Server, TlsPair.MoreThanFits).InTime();
        await sending.InTime();
        await AssertUsable(pair);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_file_while_a_write_is_pending_is_refused_and_the_write_goes_on(TlsMode mode, SslProtocols version)
    {
        using PatternFile file = new(FileSize);
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ShrinkBuffers();
        Task writing = pair.Client.WriteAsync(Pattern.Take(TlsPair.MoreThanFits)).AsTask();
        await writing.StaysPending();

        await Assert.ThrowsAsync<NotSupportedException>(() => Client(pair).SendFileAsync(file.Handle, 0, FileSize).InTime());

        await Pattern.ReceiveAsync(pair.Server, TlsPair.MoreThanFits).InTime();
        await writing.InTime();
        await AssertUsable(pair);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Reading_goes_on_while_a_file_waits_for_room(TlsMode mode, SslProtocols version)
    {
        using PatternFile file = new(TlsPair.MoreThanFits);
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ShrinkBuffers();
        Task sending = Client(pair).SendFileAsync(file.Handle, 0, TlsPair.MoreThanFits).AsTask();
        await sending.StaysPending();

        Task answering = Pattern.SendAsync(pair.Server, FileSize);
        await Pattern.ReceiveAsync(pair.Client, FileSize).InTime();
        await answering.InTime();
        Assert.False(sending.IsCompleted);

        await Pattern.ReceiveAsync(pair.Server, TlsPair.MoreThanFits).InTime();
        await sending.InTime();
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_file_trickles_through_a_tiny_buffer_to_a_slow_reader(TlsMode mode, SslProtocols version)
    {
        const int Size = 1_000_000;
        using PatternFile file = new(Size);
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ShrinkBuffers();
        pair.ClientSocket.SendBufferSize = 1;
        Task sending = Client(pair).SendFileAsync(file.Handle, 0, Size).AsTask();
        await sending.StaysPending();

        await Pattern.ReceiveAsync(pair.Server, Size, buffer: 3_000).InTime();
        await sending.InTime();
    }

    /// <summary>
    /// The key's limit is less than the file: the key is changed during the transfer, or sending ends.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    [Trait("Pitfall", "22")]
    public async Task A_file_longer_than_a_key_is_good_for(TlsMode mode, SslProtocols version)
    {
        const int Records = 20;
        const int Good = Records * 16 * 1024;
        using PatternFile file = new(FileSize);
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version, tune: o => o.RecordLimit = Records);
        Task sending = Client(pair).SendFileAsync(file.Handle, 0, FileSize).AsTask();
        if (version == SslProtocols.Tls13 && (mode == TlsMode.DirectOpenSsl || KtlsPlatform.Probe().CanRekey))
        {
            await Pattern.ReceiveAsync(pair.Server, FileSize).InTime();
            await sending.InTime();
            await AssertUsable(pair);
            return;
        }

        await Pattern.ReceiveAsync(pair.Server, Good).InTime();
        Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime());
        await Assert.ThrowsAsync<KtlsRekeyException>(() => sending.InTime());
        await Assert.ThrowsAsync<KtlsRekeyException>(() => Client(pair).SendFileAsync(file.Handle, 0, 1).InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_cancelled_token_sends_nothing(TlsMode mode, SslProtocols version)
    {
        using PatternFile file = new(FileSize);
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);

        OperationCanceledException e = await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => Client(pair).SendFileAsync(file.Handle, 0, FileSize, new CancellationToken(true)).InTime());

        Assert.True(e.CancellationToken.IsCancellationRequested);
        await AssertUsable(pair);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_file_that_is_cancelled_half_way_breaks_the_sending_half(TlsMode mode, SslProtocols version)
    {
        using PatternFile file = new(TlsPair.MoreThanFits);
        await using TlsPair pair = await TlsPair.ConnectAsync(
            mode, TlsMode.DirectOpenSsl, version, tune: o => o.RequireCloseNotify = true);
        pair.ShrinkBuffers();
        using CancellationTokenSource source = new();
        Task sending = Client(pair).SendFileAsync(file.Handle, 0, TlsPair.MoreThanFits, source.Token).AsTask();
        await sending.StaysPending();

        await source.CancelAsync();

        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => sending.InTime());
        await AssertBroken(pair, file);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Disposing_ends_it_and_the_peer_sees_a_truncation(TlsMode mode, SslProtocols version)
    {
        using PatternFile file = new(TlsPair.MoreThanFits);
        await using TlsPair pair = await TlsPair.ConnectAsync(
            mode, TlsMode.DirectOpenSsl, version, tune: o => o.RequireCloseNotify = true);
        pair.ShrinkBuffers();
        Task sending = Client(pair).SendFileAsync(file.Handle, 0, TlsPair.MoreThanFits).AsTask();
        await sending.StaysPending();

        await Limits.Blocking(pair.Client.Dispose).InTime();

        await Assert.ThrowsAnyAsync<IOException>(() => sending.InTime());
        await Assert.ThrowsAnyAsync<IOException>(() => pair.Server.CopyToAsync(Stream.Null).InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    [Trait("Pitfall", "11")]
    public async Task A_file_that_ends_early_is_a_truncation(TlsMode mode, SslProtocols version)
    {
        using PatternFile file = new(100_000);
        foreach ((int offset, int there) in new[] { (0, 100_000), (99_999, 1), (100_000, 0), (500_000, 0) })
        {
            await using TlsPair pair = await TlsPair.ConnectAsync(
                mode, TlsMode.DirectOpenSsl, version, tune: o => o.RequireCloseNotify = true);

            EndOfStreamException e = await Assert.ThrowsAsync<EndOfStreamException>(
                () => Client(pair).SendFileAsync(file.Handle, offset, 200_000).InTime());

            Assert.Contains($"{there} of 200000 bytes", e.Message, StringComparison.Ordinal);
            byte[] received = new byte[there];
            await pair.Server.ReadExactlyAsync(received).InTime();
            Pattern.AssertAt(offset, received);
            await AssertBroken(pair, file);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    [Trait("Pitfall", "11")]
    public async Task A_file_that_is_truncated_meanwhile_is_a_truncation(TlsMode mode, SslProtocols version)
    {
        using PatternFile file = new(TlsPair.MoreThanFits);
        await using TlsPair pair = await TlsPair.ConnectAsync(
            mode, TlsMode.DirectOpenSsl, version, tune: o => o.RequireCloseNotify = true);
        pair.ShrinkBuffers();
        Task sending = Client(pair).SendFileAsync(file.Handle, 0, TlsPair.MoreThanFits).AsTask();
        await sending.StaysPending();

        const int Rest = TlsPair.MoreThanFits - 1_000_001;
        using (SafeFileHandle writable = File.OpenHandle(file.FullName, FileMode.Open, FileAccess.Write, FileShare.ReadWrite))
        {
            RandomAccess.SetLength(writable, Rest);
        }

        await Pattern.ReceiveAsync(pair.Server, Rest).InTime();
        EndOfStreamException e = await Assert.ThrowsAsync<EndOfStreamException>(() => sending.InTime());
        Assert.Contains($"{Rest} of {TlsPair.MoreThanFits} bytes", e.Message, StringComparison.Ordinal);
        await AssertBroken(pair, file);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_peer_s_end_is_a_failure(TlsMode mode, SslProtocols version)
    {
        using PatternFile file = new(TlsPair.MoreThanFits);
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ShrinkBuffers();
        Task sending = Client(pair).SendFileAsync(file.Handle, 0, TlsPair.MoreThanFits).AsTask();
        await sending.StaysPending();

        pair.ServerSocket.Close(0);

        IOException e = await Assert.ThrowsAnyAsync<IOException>(() => sending.InTime());
        Assert.IsType<SocketException>(e.InnerException);
        await Assert.ThrowsAnyAsync<IOException>(() => Client(pair).SendFileAsync(file.Handle, 0, 1).InTime());
    }

    /// <summary>Tests files whose length is unknown and which the kernel cannot always send itself.</summary>
    [Theory]
    [MemberData(nameof(All))]
    [Trait("Pitfall", "14")]
    public async Task Files_that_are_made_as_they_are_read_arrive(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        foreach (string path in new[] { "/proc/self/auxv", "/proc/self/cmdline", "/proc/version" })
        {
            byte[] content = File.ReadAllBytes(path);
            Assert.NotEmpty(content);
            using SafeFileHandle file = File.OpenHandle(path);

            await Client(pair).SendFileAsync(file, 0, content.Length).InTime(path);

            byte[] received = new byte[content.Length];
            await pair.Server.ReadExactlyAsync(received).InTime(path);
            Assert.Equal(content, received);
        }

        await AssertUsable(pair);
    }

    private static KtlsStream Client(TlsPair pair) => (KtlsStream)pair.Client;

    private static async Task AssertUsable(TlsPair pair)
    {
        byte[] buffer = new byte[3];
        await pair.Client.WriteAsync(new byte[] { 1, 2, 3 }).InTime();
        await pair.Server.ReadExactlyAsync(buffer).InTime();
        Assert.Equal([1, 2, 3], buffer);
    }

    /// <summary>Asserts that nothing can follow, and that the peer sees no clean end.</summary>
    private static async Task AssertBroken(TlsPair pair, PatternFile file)
    {
        await Assert.ThrowsAsync<IOException>(() => pair.Client.WriteAsync(new byte[1]).InTime());
        await Assert.ThrowsAsync<IOException>(() => Limits.Blocking(() => pair.Client.Write(new byte[1])).InTime());
        await Assert.ThrowsAsync<IOException>(() => Client(pair).SendFileAsync(file.Handle, 0, 1).InTime());
        await Assert.ThrowsAsync<IOException>(() => pair.Client.ShutdownAsync().InTime());
        Task draining = pair.Server.CopyToAsync(Stream.Null);
        await pair.Client.DisposeAsync().InTime();
        await Assert.ThrowsAnyAsync<IOException>(() => draining.InTime());
    }
}
