using System.Diagnostics;
using System.Net.Security;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Security.Authentication;
using KernelTls.IO;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

[Trait("cell", "race")]
public class DisposeTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols> OnOpenSsl => Modes.AllOnOpenSsl;

    public static TheoryData<TlsMode, SslProtocols, Reader> EveryReader => Modes.AllWith(Reader.None, Reader.Async, Reader.Blocking);

    public static TheoryData<TlsMode, SslProtocols, Reader> EveryReaderOnOpenSsl =>
        Modes.AllOnOpenSslWith(Reader.None, Reader.Async, Reader.Blocking);

    public enum Reader
    {
        None,
        Async,
        Blocking,
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_pending_read_ends_when_the_stream_is_disposed(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        Task<int> reading = pair.Server.ReadAsync(new byte[1]).AsTask();
        await reading.StaysPending();

        await pair.Server.DisposeAsync().InTime();

        await Assert.ThrowsAnyAsync<IOException>(() => reading.InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_blocking_read_ends_when_the_stream_is_disposed(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        Task<int> reading = Limits.Blocking(() => pair.Server.Read(new byte[1]));
        await reading.StaysPending();

        await Limits.Blocking(pair.Server.Dispose).InTime();

        await Assert.ThrowsAnyAsync<IOException>(() => reading.InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_pending_write_ends_when_the_stream_is_disposed(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ShrinkBuffers();
        Task writing = pair.Client.WriteAsync(new byte[TlsPair.MoreThanFits]).AsTask();
        await writing.StaysPending();

        await Limits.Blocking(pair.Client.Dispose).InTime();

        await Assert.ThrowsAnyAsync<IOException>(() => writing.InTime());
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_write_that_disposal_aborts_is_a_truncation_to_the_peer(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version, tune: o => o.RequireCloseNotify = true);
        pair.ShrinkBuffers();
        Task writing = pair.Client.WriteAsync(new byte[TlsPair.MoreThanFits]).AsTask();
        await writing.StaysPending();
        await Limits.Blocking(pair.Client.Dispose).InTime();
        await Assert.ThrowsAsync<IOException>(() => writing.InTime());

        await Assert.ThrowsAnyAsync<IOException>(() => pair.Server.CopyToAsync(Stream.Null).InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_disposed_stream_is_of_no_more_use(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        SslStream stream = pair.Client;
        stream.Dispose();
        byte[] buffer = new byte[1];

        await Assert.ThrowsAsync<ObjectDisposedException>(() => stream.ReadAsync(buffer).AsTask());
        await Assert.ThrowsAsync<ObjectDisposedException>(() => stream.WriteAsync(buffer).AsTask());
        Assert.Throws<ObjectDisposedException>(() => stream.Read(buffer));
        Assert.Throws<ObjectDisposedException>(() => stream.Write(buffer));
        Assert.Throws<ObjectDisposedException>(() => stream.Read(buffer, 0, 1));
        Assert.Throws<ObjectDisposedException>(() => stream.Write(buffer, 0, 1));
        Assert.Throws<ObjectDisposedException>(() => stream.ReadByte());
        Assert.Throws<ObjectDisposedException>(() => stream.WriteByte(1));
        await Assert.ThrowsAsync<ObjectDisposedException>(() => stream.ShutdownAsync());
        await Assert.ThrowsAsync<ObjectDisposedException>(() => stream.HandshakeAsClientAsync(Handshakes.ClientOptions(version)));
        Assert.Throws<ObjectDisposedException>(() => stream.SslProtocol);
        Assert.Throws<ObjectDisposedException>(() => stream.NegotiatedCipherSuite);
        Assert.Throws<ObjectDisposedException>(() => stream.RemoteCertificate);
        Assert.False(stream.CanRead);
        Assert.False(stream.CanWrite);
        Assert.False(stream.IsAuthenticated);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Flushing_a_disposed_stream_does_no_harm(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.Client.Dispose();

        Assert.Null(Record.Exception(pair.Client.Flush));
        Assert.Null(await Record.ExceptionAsync(() => pair.Client.FlushAsync()));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Disposing_twice_is_disposing_once(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);

        pair.Client.Dispose();
        pair.Client.Dispose();
        await pair.Client.DisposeAsync();
        await pair.Server.DisposeAsync();
        await pair.Server.DisposeAsync();
        pair.Server.Dispose();

        Assert.False(pair.Client.CanRead);
        Assert.False(pair.Server.CanRead);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Disposing_closes_the_socket(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);

        await pair.Client.DisposeAsync().InTime();
        pair.Server.Dispose();

        Assert.True(pair.ClientSocket.SafeHandle.IsClosed);
        Assert.True(pair.ServerSocket.SafeHandle.IsClosed);
    }

    /// <summary>
    /// Tests a connection that was aborted, as by a server: nothing can be sent, and nothing may be thrown.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Disposing_after_the_socket_was_closed_throws_nothing_within(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        AsyncLocal<bool> isHere = new() { Value = true };
        using ThrownExceptions thrown = new(_ => isHere.Value);

        pair.ClientSocket.Dispose();
        pair.Client.Dispose();
        pair.ServerSocket.Dispose();
        await pair.Server.DisposeAsync().InTime();

        thrown.AssertNone();
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Disposing_tells_the_peer_that_this_is_the_end(TlsMode mode, SslProtocols version)
    {
        foreach (bool blocking in new[] { true, false })
        {
            await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
            if (blocking)
            {
                await Limits.Blocking(pair.Client.Dispose).InTime();
            }
            else
            {
                await pair.Client.DisposeAsync().InTime();
            }

            Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime());
        }
    }

    /// <summary>The send buffer is full when the stream is disposed, so close_notify must wait for space.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Disposing_after_a_large_write_loses_neither_data_nor_the_end(TlsMode mode, SslProtocols version)
    {
        foreach (bool blocking in new[] { true, false })
        {
            await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
            pair.ClientSocket.SendBufferSize = 16 * 1024;
            const int Size = 1_000_000;
            Task sending = Task.Run(async () =>
            {
                await Pattern.SendAsync(pair.Client, Size, chunk: 100_000);
                if (blocking)
                {
                    pair.Client.Dispose();
                }
                else
                {
                    await pair.Client.DisposeAsync();
                }
            });

            await Pattern.ReceiveAsync(pair.Server, Size, buffer: 1_000).InTime();
            Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime());
            await sending.InTime();
        }
    }

    /// <summary>
    /// Disposing a stream with a full send buffer does not wait for the peer, which then reads all data and, on kernel TLS and OpenSSL,
    /// the end. Pending reads must not make the disposal reset the connection.
    /// </summary>
    [Theory]
    [MemberData(nameof(EveryReader))]
    public async Task Disposing_with_a_full_send_buffer_waits_for_nobody(TlsMode mode, SslProtocols version, Reader reader)
    {
        TimeSpan time = TimeSpan.Zero;
        foreach (bool blocking in new[] { true, false, true, false })
        {
            await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
            pair.ShrinkBuffers();
            long sent = await FillAsync(pair);
            Task reading = reader switch
            {
                Reader.Async => pair.Client.ReadAsync(new byte[1]).AsTask(),
                Reader.Blocking => Limits.Blocking(() => pair.Client.Read(new byte[1])),
                _ => Task.CompletedTask,
            };
            await (reader == Reader.None ? reading : reading.StaysPending("the read"));

            Stopwatch watch = Stopwatch.StartNew();
            await (blocking ? Limits.Blocking(pair.Client.Dispose) : pair.Client.DisposeAsync().AsTask()).InTime("the disposal");
            time += watch.Elapsed;
            _ = await Record.ExceptionAsync(() => reading.InTime("the pending read"));
            if (!Modes.OnOpenSsl.Contains(mode))
            {
                // SslStream leaves the server's tickets unread, and its closed socket therefore resets the connection.
                continue;
            }

            await Pattern.ReceiveAsync(pair.Server, sent).InTime("what was in the send buffer");

            Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime("the end"));
        }

        // Four times the three seconds for which close_notify might wait.
        Assert.InRange(time, TimeSpan.Zero, TimeSpan.FromSeconds(6));
    }

    /// <summary>
    /// close_notify is left to another descriptor. A full socket has usually still room for it, in the last segment, so the test begins
    /// behind that attempt.
    /// </summary>
    [Theory]
    [MemberData(nameof(EveryReaderOnOpenSsl))]
    public async Task A_close_notify_without_room_follows_the_data(TlsMode mode, SslProtocols version, Reader reader)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ShrinkBuffers();
        long sent = await FillAsync(pair);
        Task reading = reader switch
        {
            Reader.Async => pair.Client.ReadAsync(new byte[1]).AsTask(),
            Reader.Blocking => Limits.Blocking(() => pair.Client.Read(new byte[1])),
            _ => Task.CompletedTask,
        };
        await (reader == Reader.None ? reading : reading.StaysPending("the read"));

        await Limits.Blocking(() => SessionOf((KtlsStream)pair.Client)!.LingerToClose()).InTime("the connection to be handed over");

        Assert.True(pair.ClientSocket.SafeHandle.IsClosed);
        pair.Client.Dispose();
        _ = await Record.ExceptionAsync(() => reading.InTime("the pending read"));
        await Pattern.ReceiveAsync(pair.Server, sent).InTime("what was in the send buffer");
        Task<int> end = pair.Server.ReadAsync(new byte[1]).AsTask();
        if (reader == Reader.Blocking)
        {
            // .NET shuts the socket down to end a read that blocks a thread. The data is not lost.
            Exception? truncated = await Record.ExceptionAsync(() => end.InTime("the end"));
            Assert.True(truncated is null or IOException { InnerException: not SocketException }, $"{truncated}");
        }
        else
        {
            Assert.Equal(0, await end.InTime("the end"));
        }
    }

    /// <summary>A peer that never reads costs no thread and no descriptor for long.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_peer_that_never_reads_is_left_after_a_while(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ShrinkBuffers();
        await FillAsync(pair);
        TimeSpan limit = LingeringClose.DataLimit;
        LingeringClose.DataLimit = TimeSpan.FromSeconds(3);
        pair.Client.Dispose();
        LingeringClose.DataLimit = limit;

        // A closed socket answers by a reset.
        await Assert.ThrowsAsync<IOException>(() => Limits.Blocking(() =>
        {
            while (true)
            {
                pair.Server.Write(new byte[1]);
                Thread.Sleep(10);
            }
        }).InTime("the reset of a connection that nobody serves any more"));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Leaving_the_inner_stream_open_leaves_the_socket_open(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version, leaveInnerStreamOpen: true);
        await pair.Client.ShutdownAsync().InTime();
        Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime());

        await pair.Client.DisposeAsync().InTime();
        pair.Server.Dispose();

        Assert.False(pair.ClientSocket.SafeHandle.IsClosed);
        Assert.False(pair.ServerSocket.SafeHandle.IsClosed);
        // What kernel TLS has on the socket stays there: SocketReuseTests.
        Assert.Equal(mode != TlsMode.Kernel, pair.ClientSocket.Connected);
        pair.ClientSocket.Shutdown(SocketShutdown.Both);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_handshake_ends_when_the_stream_is_disposed(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.CreateAsync(mode, TlsMode.Stock);
        Task shaking = pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(version));
        await shaking.StaysPending();

        await pair.Client.DisposeAsync().InTime();

        // By time, SslStream's handshake may meet the disposed NetworkStream.
        Exception? e = await Record.ExceptionAsync(() => shaking.InTime());
        Assert.True(e is IOException || (e is ObjectDisposedException && !Modes.OnOpenSsl.Contains(mode)), $"{e}");
    }

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_session")]
    private static extern ref TlsSession? SessionOf(KtlsStream stream);

    /// <summary>Writes until the socket has not been writable for a while.</summary>
    private static async Task<long> FillAsync(TlsPair pair)
    {
        long sent = 0;
        while (pair.ClientSocket.Poll(Limits.Absence, SelectMode.SelectWrite))
        {
            await pair.Client.WriteAsync(Pattern.At(sent, 1_000)).InTime();
            sent += 1_000;
        }

        return sent;
    }
}
