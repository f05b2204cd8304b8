using System.Buffers;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests key changes that wait for space that never comes: the wait ends with its token or its timeout.
/// </summary>
[Trait("cell", "race")]
public class KeyChangeWaitTests
{
    public static TheoryData<TlsMode> Changing => KeyChangeTests.Changing;

    public static TheoryData<TlsMode, int> ChangingSegments =>
    [
        .. KeyChangeTests.ChangingModes.Select(m => new TheoryDataRow<TlsMode, int>(m, 1)),
        .. KeyChangeTests.ChangingModes.Select(m => new TheoryDataRow<TlsMode, int>(m, 100)),
    ];

    /// <summary>The update holds the sender's gate and waits for space that never comes.</summary>
    [Theory]
    [MemberData(nameof(Changing))]
    public async Task A_blocking_write_behind_a_key_update_honours_WriteTimeout(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
        pair.ShrinkBuffers();
        Fill(pair.ClientSocket);
        KtlsStream client = (KtlsStream)pair.Client;
        Task update = client.UpdateSendKeyAsync(requestPeerUpdate: false).AsTask();
        await update.StaysPending();
        client.WriteTimeout = 100;

        IOException e = await Assert.ThrowsAsync<IOException>(() => Limits.Blocking(() => client.Write(new byte[1])).InTime());

        Assert.Equal(SocketError.TimedOut, Assert.IsType<SocketException>(e.InnerException).SocketErrorCode);
        await client.DisposeAsync().InTime();
        await Assert.ThrowsAsync<IOException>(() => update.InTime());
    }

    /// <summary>
    /// A record that the kernel cannot decrypt becomes an error of the socket, which is then always ready but never has
    /// space. On OpenSSL the record is unknown until it is read; there the peer's reset is the error.
    /// </summary>
    [Theory]
    [MemberData(nameof(Changing))]
    public async Task A_key_update_that_waits_for_room_ends_where_the_connection_fails(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(TlsMode.DirectOpenSsl, mode, SslProtocols.Tls13);
        pair.ShrinkBuffers();
        Fill(pair.ServerSocket);
        Task update = Task.Run(async () => await ((KtlsStream)pair.Server).UpdateSendKeyAsync(requestPeerUpdate: false));
        await update.StaysPending();

        if (mode == TlsMode.Kernel)
        {
            pair.ClientSocket.Send([0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
        }
        else
        {
            pair.ClientSocket.Close(0);
        }

        await Assert.ThrowsAsync<IOException>(() => update.InTime("the key update on the failed connection"));
    }

    /// <summary>
    /// Each record is followed by a key update, which waits for space before the socket reports that it is full.
    /// </summary>
    [Theory]
    [MemberData(nameof(ChangingSegments))]
    public async Task A_write_that_waits_to_change_its_key_can_be_cancelled(TlsMode mode, int segments)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13, tune: o => o.RecordLimit = 1);
        pair.ShrinkBuffers();
        KtlsStream client = (KtlsStream)pair.Client;
        ReadOnlySequence<byte> data = GatherWriteTests.Segments(0, [.. Enumerable.Repeat(TlsPair.MoreThanFits / segments, segments)]);
        using CancellationTokenSource cancel = new();
        Task writing = client.WriteAsync(data, cancel.Token).AsTask();
        await writing.StaysPending();

        await cancel.CancelAsync();

        OperationCanceledException e = await Assert.ThrowsAnyAsync<OperationCanceledException>(() => writing.InTime("the cancelled write"));
        Assert.Equal(cancel.Token, e.CancellationToken);
        await Assert.ThrowsAsync<IOException>(() => client.WriteAsync(new byte[1]).AsTask().InTime());
    }

    [Theory]
    [MemberData(nameof(Changing))]
    public async Task A_file_that_waits_to_change_its_key_can_be_cancelled(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13, tune: o => o.RecordLimit = 1);
        pair.ShrinkBuffers();
        using PatternFile file = new(TlsPair.MoreThanFits);
        using SafeFileHandle handle = File.OpenHandle(file.FullName);
        using CancellationTokenSource cancel = new();
        Task sending = ((KtlsStream)pair.Client).SendFileAsync(handle, 0, TlsPair.MoreThanFits, cancel.Token).AsTask();
        await sending.StaysPending();

        await cancel.CancelAsync();

        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => sending.InTime("the cancelled file"));
    }

    [Theory]
    [MemberData(nameof(Changing))]
    public async Task A_blocking_write_that_waits_to_change_its_key_honours_WriteTimeout(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13, tune: o => o.RecordLimit = 1);
        pair.ShrinkBuffers();
        pair.Client.WriteTimeout = 500;

        IOException e = await Assert.ThrowsAsync<IOException>(
            () => Limits.Blocking(() => pair.Client.Write(new byte[TlsPair.MoreThanFits])).InTime("the write to time out"));

        Assert.Equal(SocketError.TimedOut, Assert.IsType<SocketException>(e.InnerException).SocketErrorCode);
    }

    /// <summary>
    /// Fills the socket with data that is not TLS, if the kernel does not encrypt. The peer must not read it.
    /// </summary>
    private static void Fill(Socket socket)
    {
        // The receiver accepts a little more when the sender probes again, after a fifth of a second.
        while (socket.Poll(TimeSpan.FromSeconds(1), SelectMode.SelectWrite))
        {
            socket.Send(new byte[1024]);
        }
    }
}
