using System.Net.Sockets;
using KernelTls.IO;
using KernelTls.Offload;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>
/// Tests waits for readiness on the socket's own descriptor: which waiter is notified, and reused descriptors.
/// </summary>
public sealed class SocketReadinessTests : IAsyncLifetime
{
    /// <summary>
    /// The time after which the send buffer stays full. The receiver accepts a little more when the sender probes
    /// again, after a fifth of a second.
    /// </summary>
    private static readonly TimeSpan s_forGood = TimeSpan.FromSeconds(1);

    private SocketPair _pair = null!;
    private int _queued;

    public async ValueTask InitializeAsync()
    {
        Assert.Equal(KtlsFallbackReason.None, Platform.Current.DirectReason);
        _pair = await SocketPair.ConnectAsync();
        _queued = Fill(_pair, s_forGood);
    }

    public ValueTask DisposeAsync()
    {
        _pair.Dispose();
        return ValueTask.CompletedTask;
    }

    [Fact]
    public async Task A_wait_for_room_ends_when_the_peer_has_read()
    {
        Task wait = SocketReadiness.WaitToWriteAsync(_pair.Client.SafeHandle, CancellationToken.None);
        await wait.StaysPending();

        Drain();

        await wait.InTime("room in the send buffer");
        Assert.True(_pair.Client.Poll(TimeSpan.Zero, SelectMode.SelectWrite));
    }

    [Fact]
    public async Task Waits_on_one_socket_each_end_by_themselves()
    {
        using CancellationTokenSource cancellation = new();
        Task cancelled = SocketReadiness.WaitToWriteAsync(_pair.Client.SafeHandle, cancellation.Token);
        Task writable = SocketReadiness.WaitToWriteAsync(_pair.Client.SafeHandle, CancellationToken.None);
        Task readable = SocketReadiness.WaitToReadAsync(_pair.Client.SafeHandle, CancellationToken.None);

        await cancellation.CancelAsync();

        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => cancelled.InTime("the cancelled wait"));
        await Task.WhenAny(writable, readable).StaysPending();
        Assert.Equal(1, _pair.Server.Send(new byte[1]));
        await readable.InTime("a byte");

        // Another wait on the socket may have been notified as well, and then waits again.
        Drain();
        await writable.InTime("room in the send buffer");
    }

    /// <summary>
    /// A NetworkStream shuts its socket down before it closes it, so that sent data arrives; Close(0) aborts.
    /// </summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Disposing_the_socket_ends_its_wait_and_closes_the_connection(bool abort)
    {
        Task wait = SocketReadiness.WaitToWriteAsync(_pair.Client.SafeHandle, CancellationToken.None);
        await wait.StaysPending();

        _pair.Client.Blocking = true; // as NetworkStream requires
        await using NetworkStream stream = new(_pair.Client, ownsSocket: true);
        await Limits.Blocking(() => Close(stream, abort)).InTime("the socket to be closed");

        await wait.InTime("the wait to end with its socket");
        if (abort)
        {
            SocketException failure = Assert.Throws<SocketException>(Drain);
            Assert.Equal(SocketError.ConnectionReset, failure.SocketErrorCode);
        }
        else
        {
            Drain();
            Assert.Equal(0, _pair.Server.Receive(new byte[1]));
        }
    }

    [Fact]
    public async Task A_disposed_socket_is_not_waited_for()
    {
        SafeSocketHandle handle = _pair.Client.SafeHandle;
        _pair.Client.Dispose();

        await Assert.ThrowsAsync<ObjectDisposedException>(() => SocketReadiness.WaitToWriteAsync(handle, CancellationToken.None).InTime());
    }

    /// <summary>
    /// The number of a closed descriptor is immediately reused by the next socket. That socket waits for its own space:
    /// its wait must neither be notified of the first socket's end nor be removed with it.
    /// </summary>
    [Fact]
    public async Task A_descriptor_that_is_used_again_gets_its_own_reports_only()
    {
        const int Rounds = 300;
        int reused = 0;
        for (int i = 0; i < Rounds; i++)
        {
            SocketPair first = await SocketPair.ConnectAsync();
            Fill(first, TimeSpan.Zero);
            nint number = first.Client.SafeHandle.DangerousGetHandle();
            using CancellationTokenSource cancellation = new();
            Task ended = SocketReadiness.WaitToWriteAsync(first.Client.SafeHandle, cancellation.Token);

            // Alternately the wait is canceled first, together with the socket, or not at all.
            Task cancelling = i % 3 == 0 ? Task.CompletedTask : Task.Run(() => cancellation.Cancel());
            if (i % 3 == 1)
            {
                await cancelling.InTime();
            }

            first.Client.Close(0);
            using SocketPair second = await SocketPair.ConnectAsync();
            Socket reusing = second.Client.SafeHandle.DangerousGetHandle() == number ? second.Client : second.Server;
            reused += reusing.SafeHandle.DangerousGetHandle() == number ? 1 : 0;
            int queued = Fill(reusing, TimeSpan.Zero);
            Task wait = SocketReadiness.WaitToWriteAsync(reusing.SafeHandle, CancellationToken.None);
            await cancelling.InTime();
            await Task.WhenAny(ended).InTime("the first socket's wait to end");
            first.Dispose();
            Assert.True(
                !wait.IsCompleted || reusing.Poll(TimeSpan.Zero, SelectMode.SelectWrite),
                $"round {i}: the second socket's wait ended without room");

            Drain(reusing == second.Client ? second.Server : second.Client, queued);
            await wait.InTime("room in the second socket's buffer");
        }

        Assert.InRange(reused, Rounds / 2, Rounds);
    }

    private static void Close(NetworkStream stream, bool abort)
    {
        if (abort)
        {
            stream.Socket.Close(0);
        }
        else
        {
            stream.Dispose();
        }
    }

    private static int Fill(SocketPair pair, TimeSpan patience)
    {
        pair.Client.SendBufferSize = pair.Server.ReceiveBufferSize = 64 * 1024;
        return Fill(pair.Client, patience);
    }

    /// <summary>Sends until the socket has accepted nothing for a while.</summary>
    private static int Fill(Socket socket, TimeSpan patience)
    {
        socket.Blocking = false;
        byte[] noise = new byte[64 * 1024];
        int total = 0;
        do
        {
            int sent;
            SocketError error;
            while ((sent = socket.Send(noise, SocketFlags.None, out error)) > 0)
            {
                total += sent;
            }

            Assert.Equal(SocketError.WouldBlock, error);
        }
        while (socket.Poll(patience, SelectMode.SelectWrite));

        return total;
    }

    private void Drain() => Drain(_pair.Server, _queued);

    private static void Drain(Socket socket, int count)
    {
        byte[] buffer = new byte[64 * 1024];
        while (count > 0)
        {
            Assert.True(socket.Poll(Limits.Wait, SelectMode.SelectRead), $"{count} bytes did not come");
            count -= socket.Receive(buffer, Math.Min(count, buffer.Length), SocketFlags.None);
        }
    }
}
