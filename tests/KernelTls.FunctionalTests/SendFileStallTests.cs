using System.Diagnostics;
using System.Globalization;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Over loopback one segment is 65,483 bytes. Where it fills the send buffer, a plain sendfile waits for the peer's delayed
/// acknowledgement after each (docs/tuning.md).
/// </summary>
[Trait("Pitfall", "23")]
public class SendFileStallTests : KernelTest
{
    private const int Rounds = 3;
    private const int SmallSegment = 1448;
    private const int MaxSegmentOption = 2; // TCP_MAXSEG
    private const int Mebibyte = 1 << 20;

    /// <summary>Least, first and largest send buffer of this network namespace's sockets.</summary>
    private const string BufferLimits = "/proc/sys/net/ipv4/tcp_wmem";

    private delegate Task Sending(KtlsStream stream, Socket socket, SafeFileHandle file, long count);

    [Fact]
    public async Task A_plain_sendfile_waits_for_acknowledgements_and_ours_does_not()
    {
        using PatternFile file = new(4 * Mebibyte);
        Measure plain = default;
        Measure ours = default;
        Measure reference = default;
        for (int round = 0; round < Rounds; round++)
        {
            reference = reference.Faster(await MeasureAsync(file, 4 * Mebibyte, SmallSegment, smallBuffer: true, OursAsync));
            ours = ours.Faster(await MeasureAsync(file, 4 * Mebibyte, 0, smallBuffer: true, OursAsync));
            plain = plain.Slower(await MeasureAsync(file, 4 * Mebibyte, 0, smallBuffer: true, PlainAsync));
        }

        string measured = $"plain {plain}, ours {ours}, small segments {reference}";
        TestContext.Current.SendDiagnosticMessage(measured);
        Assert.True(plain.DelayedAcknowledgements >= 8, measured);
        Assert.True(plain.Time > 1.5 * reference.Time, measured);
        Assert.True(ours.DelayedAcknowledgements < 8, measured);
        Assert.True(ours.Time < 1.5 * reference.Time, measured);
    }

    [Theory]
    [InlineData(4, false)]
    [InlineData(64, false)]
    [InlineData(64, true)]
    public async Task Large_segments_are_no_slower_than_small_ones(int mebibytes, bool smallBuffer)
    {
        long count = (long)mebibytes * Mebibyte;
        using PatternFile file = new(mebibytes * Mebibyte);
        Measure ours = default;
        Measure reference = default;
        for (int round = 0; round < Rounds && (round == 0 || ours.Time >= 1.5 * reference.Time); round++)
        {
            reference = reference.Faster(await MeasureAsync(file, count, SmallSegment, smallBuffer, OursAsync));
            ours = ours.Faster(await MeasureAsync(file, count, 0, smallBuffer, OursAsync));
        }

        string measured = $"ours {ours}, small segments {reference}";
        TestContext.Current.SendDiagnosticMessage(measured);
        Assert.True(ours.Time < 1.5 * reference.Time, measured);
    }

    private static async Task OursAsync(KtlsStream stream, Socket socket, SafeFileHandle file, long count) =>
        await stream.SendFileAsync(file, 0, count);

    /// <summary>As much as the socket takes at a time, and a wait for room, over and over.</summary>
    private static Task PlainAsync(KtlsStream stream, Socket socket, SafeFileHandle file, long count) => Limits.Blocking(() =>
    {
        for (long offset = 0; offset < count;)
        {
            if (SystemCalls.SendFile(socket.SafeHandle, file, ref offset, (nint)(count - offset)) < 0)
            {
                Assert.Equal(SystemCalls.TryAgain, Marshal.GetLastPInvokeError());
                Assert.True(socket.Poll(Limits.Wait, SelectMode.SelectWrite), "no room in the send buffer");
            }
        }
    });

    /// <summary>To the arrival of the last byte at a peer that reads as fast as it can, without decrypting.</summary>
    private static async Task<Measure> MeasureAsync(PatternFile file, long count, int segment, bool smallBuffer, Sending send)
    {
        string limits = File.ReadAllText(BufferLimits);
        try
        {
            if (smallBuffer)
            {
                File.WriteAllText(BufferLimits, "4096 16384 65536");
            }

            SocketPair sockets = await SocketPair.ConnectAsync(socket =>
            {
                if (segment != 0)
                {
                    socket.SetRawSocketOption((int)ProtocolType.Tcp, MaxSegmentOption, BitConverter.GetBytes(segment));
                }
            });
            await using TlsPair pair = await TlsPair.ConnectAsync(
                TlsMode.Kernel, TlsMode.DirectOpenSsl, SslProtocols.Tls13, sockets: sockets);
            long before = DelayedAcknowledgements();
            Stopwatch time = Stopwatch.StartNew();
            Task<long> draining = Limits.Blocking(() => Drain(sockets.Server));
            await Task.Run(() => send((KtlsStream)pair.Client, sockets.Client, file.Handle, count)).InTime($"sending {count} bytes");
            sockets.Client.Shutdown(SocketShutdown.Send);
            Assert.True(await draining.InTime("the end") > count);
            return new Measure(time.Elapsed, DelayedAcknowledgements() - before);
        }
        finally
        {
            File.WriteAllText(BufferLimits, limits);
        }
    }

    private static long Drain(Socket socket)
    {
        byte[] buffer = new byte[256 * 1024];
        long count = 0;
        for (int read; (read = socket.Receive(buffer)) > 0; count += read)
        {
        }

        return count;
    }

    /// <summary>TcpExt: DelayedACKs of /proc/net/netstat: a line of names, then one of values.</summary>
    private static long DelayedAcknowledgements()
    {
        string[][] lines = [.. File.ReadLines("/proc/net/netstat").Select(l => l.Split(' ')).Where(l => l[0] == "TcpExt:")];
        return long.Parse(lines[1][Array.IndexOf(lines[0], "DelayedACKs")], CultureInfo.InvariantCulture);
    }

    private readonly record struct Measure(TimeSpan Time, long DelayedAcknowledgements)
    {
        public Measure Faster(Measure other) => Time == default || other.Time < Time ? other : this;

        public Measure Slower(Measure other) => other.Time > Time ? other : this;

        public override string ToString() => $"{Time.TotalSeconds:F2} s ({DelayedAcknowledgements} delayed acknowledgements)";
    }
}
