using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests records that were changed in transit (RFC 8446, section 5.2).</summary>
public class CorruptionTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_record_that_was_changed_is_an_error_and_none_of_it_is_delivered(TlsMode mode, SslProtocols version)
    {
        using SocketPair near = await SocketPair.ConnectAsync();
        using SocketPair far = await SocketPair.ConnectAsync();
        bool changes = false;
        _ = Relay.PassAsync(near.Server, far.Client, static _ => { });
        _ = Relay.PassAsync(far.Client, near.Server, bytes => bytes[^1] ^= (byte)(Volatile.Read(ref changes) ? 1 : 0));
        await using TlsPair pair = await TlsPair.ConnectAsync(
            mode, mode, version, sockets: new SocketPair(near.Client, far.Server));
        byte[] buffer = new byte[4096];
        await pair.Server.WriteAsync(buffer.AsMemory(0, 1000)).InTime("a record");
        await pair.Client.ReadExactlyAsync(buffer.AsMemory(0, 1000)).InTime("a record as it was sent");
        long errors = DecryptErrors(mode);

        Volatile.Write(ref changes, true);
        await pair.Server.WriteAsync(buffer.AsMemory(0, 1000)).InTime("another record");

        await Assert.ThrowsAsync<IOException>(() => pair.Client.ReadAsync(buffer).AsTask().InTime("the changed record"));
        if (pair.Client is KtlsStream { Offload.Receive: not KtlsDataPath.Managed })
        {
            await Assert.ThrowsAsync<IOException>(() => pair.Client.ReadAsync(buffer).AsTask().InTime("a read after the failure"));
            Exception told = await Assert.ThrowsAsync<IOException>(() => pair.Server.ReadAsync(buffer).AsTask().InTime("the alert"));
            Assert.Contains("bad record mac", told.ToString(), StringComparison.Ordinal);
        }

        if (pair.Client is KtlsStream { Offload.Receive: KtlsDataPath.Kernel })
        {
            Assert.InRange(DecryptErrors(mode) - errors, 1, long.MaxValue);
        }
    }

    /// <summary>Gets how many bytes of the record before are read first, and how.</summary>
    public static TheoryData<TlsMode, SslProtocols, int> Parts => Modes.AllWith(1_000, 4_096);

    /// <summary>A write may take the error that the kernel stores for a record that it refuses, and the data before it is still to read.</summary>
    [Theory]
    [MemberData(nameof(Parts))]
    public async Task A_write_that_meets_a_refused_record_leaves_the_data_before_it_and_the_error_to_reads(
        TlsMode mode, SslProtocols version, int part)
    {
        foreach (byte[] refused in Refused)
        {
            foreach (bool blocking in new[] { false, true })
            {
                await using TlsPair pair = await TlsPair.ConnectAsync(TlsMode.Stock, mode, version);
                const int Size = 16 * 1024;
                await pair.Client.WriteAsync(Pattern.At(0, Size)).InTime("a record");
                byte[] buffer = new byte[Size];
                int read = await ReadAsync(pair.Server, buffer.AsMemory(0, part), blocking);
                await pair.ClientSocket.SendAsync(refused);
                if (pair.Server is KtlsStream { Offload.Receive: KtlsDataPath.Kernel })
                {
                    Assert.True(pair.ServerSocket.Poll(Limits.Wait, SelectMode.SelectError), "the kernel has not refused the record");
                    await Assert.ThrowsAsync<IOException>(() => WriteAsync(pair.Server, blocking));
                }
                else
                {
                    await WriteAsync(pair.Server, blocking);
                }

                while (read < Size)
                {
                    read += await ReadAsync(pair.Server, buffer.AsMemory(read, Math.Min(part, Size - read)), blocking);
                }

                Pattern.AssertAt(0, buffer);
                await Assert.ThrowsAsync<IOException>(() => ReadAsync(pair.Server, buffer, blocking));
                if (pair.Server is KtlsStream { Offload.Receive: not KtlsDataPath.Managed })
                {
                    await Assert.ThrowsAsync<IOException>(() => ReadAsync(pair.Server, buffer, blocking));
                }
            }
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_write_that_meets_a_refused_record_leaves_the_error_to_a_read_in_progress(TlsMode mode, SslProtocols version)
    {
        foreach (byte[] refused in Refused)
        {
            foreach (bool blocking in new[] { false, true })
            {
                await using TlsPair pair = await TlsPair.ConnectAsync(TlsMode.Stock, mode, version);
                Task<int> reading = ReadAsync(pair.Server, new byte[10], blocking);
                Task<int> peer = pair.Client.ReadAsync(new byte[1_000]).AsTask();
                await reading.StaysPending();

                // The write and the read that is woken race for the error.
                Task writing = Limits.Blocking(() => AwaitFailure(pair.Server));
                await pair.ClientSocket.SendAsync(refused);

                await Assert.ThrowsAsync<IOException>(() => reading.InTime("the read in progress"));
                if (pair.Server is KtlsStream { Offload.Receive: not KtlsDataPath.Managed })
                {
                    await Assert.ThrowsAsync<IOException>(() => ReadAsync(pair.Server, new byte[10], blocking));
                    await writing.InTime("a write that fails");
                }

                await pair.Server.DisposeAsync();
                await Task.WhenAny(peer).InTime("the peer to see the end");
                await Task.WhenAny(writing).InTime("the writes to end");
            }
        }
    }

    /// <summary>Gets records that no end accepts before it has decrypted them: one of another version, and one that is too long.</summary>
    private static byte[][] Refused => [[23, 3, 9, 0, 64, .. new byte[64]], [23, 3, 3, 78, 32, .. new byte[20_000]]];

    private static Task<int> ReadAsync(SslStream stream, Memory<byte> buffer, bool blocking) => blocking
        ? Limits.Blocking(() => stream.Read(buffer.Span)).InTime("a blocking read")
        : stream.ReadAsync(buffer).InTime("a read");

    private static Task WriteAsync(SslStream stream, bool blocking) => blocking
        ? Limits.Blocking(() => stream.Write(new byte[10])).InTime("a blocking write")
        : stream.WriteAsync(new byte[10]).InTime("a write");

    private static void AwaitFailure(SslStream stream)
    {
        while (Record.Exception(() => stream.Write(new byte[10])) is null)
        {
            Thread.Yield();
        }
    }

    private static long DecryptErrors(TlsMode mode) => mode == TlsMode.Kernel ? TlsStatistics.Read().DecryptError : 0;
}
