using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests that a peer which reads slowly receives all that was written before a stream was disposed. Kernel TLS accepts a record for which
/// the send buffer has only a little space and holds the rest back. Closing the socket discards what is held back, and nothing reports it.
/// </summary>
[Trait("loop", "outer")]
public class SlowReaderTests
{
    private const int Rounds = 80;
    private const int SegmentSize = 4096;

    /// <summary>The stream does not own the socket, whose owner closes it at once.</summary>
    private const string OwnerCloses = "DisposeAsync, then the owner closes the socket";

    private const int SolTcp = 6;
    private const int TcpMaxSegment = 2;

    public static TheoryData<TlsMode, SslProtocols, string> All => Modes.AllWith(
        "DisposeAsync", "Dispose", "ShutdownAsync and DisposeAsync", OwnerCloses);

    [Theory]
    [MemberData(nameof(All))]
    public async Task What_was_written_before_a_disposal_arrives(TlsMode mode, SslProtocols version, string end)
    {
        Random random = new(Seed: 1);
        for (int i = 0; i < Rounds; i++)
        {
            int size = random.Next(20_000, 200_000);
            int pause = random.Next(0, 40_000);
            await using TlsPair pair = await TlsPair.ConnectAsync(TlsMode.Stock, mode, version, leaveInnerStreamOpen: end == OwnerCloses, sockets: await ConnectAsync());

            // SslStream resets the connection if it is disposed with unread data. There is none.
            Task<long> reading = ReadSlowlyAsync(pair.Client, random.Next());
            await Pattern.SendAsync(pair.Server, size, random.Next(1_000, 17_000)).InTime("the writes");
            Thread.SpinWait(pause);
            await EndAsync(pair.Server, end).InTime("the end");
            if (end == OwnerCloses)
            {
                pair.ServerSocket.Dispose();
            }

            Assert.Equal((i, size), (i, await reading.InTime("all data")));
        }
    }

    /// <summary>Connects sockets on which an acknowledgement frees little space in the server's send buffer.</summary>
    private static async Task<SocketPair> ConnectAsync()
    {
        SocketPair sockets = await SocketPair.ConnectAsync(client =>
        {
            client.SetRawSocketOption(SolTcp, TcpMaxSegment, BitConverter.GetBytes(SegmentSize));
            client.ReceiveBufferSize = 2 * SegmentSize;
        });
        sockets.Server.SendBufferSize = SegmentSize;
        return sockets;
    }

    private static async Task EndAsync(SslStream stream, string end)
    {
        if (end == "ShutdownAsync and DisposeAsync")
        {
            await stream.ShutdownAsync();
        }

        if (end == "Dispose")
        {
            await Limits.Blocking(stream.Dispose);
        }
        else
        {
            await stream.DisposeAsync();
        }
    }

    /// <summary>Reads up to the end in small pieces, and returns how much there was.</summary>
    private static async Task<long> ReadSlowlyAsync(SslStream stream, int seed)
    {
        await Task.Yield();
        Random random = new(seed);
        byte[] buffer = new byte[20_000];
        long total = 0;
        while (true)
        {
            Thread.SpinWait(random.Next(0, 20_000));
            int count = await stream.ReadAsync(buffer.AsMemory(0, random.Next(1, buffer.Length)));
            if (count == 0)
            {
                return total;
            }

            Pattern.AssertAt(total, buffer.AsSpan(0, count));
            total += count;
        }
    }
}
