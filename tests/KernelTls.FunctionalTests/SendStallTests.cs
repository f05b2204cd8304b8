using System.Diagnostics;
using System.Globalization;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests stalls over loopback, where one segment is 65,483 bytes. If it fills the send buffer, a plain sendfile waits
/// for the peer's delayed acknowledgement after each (docs/tuning.md). Neither ours nor writes do, although their
/// records share segments.
/// </summary>
[Trait("Pitfall", "23")]
public class SendStallTests : KernelTest
{
    /// <summary>
    /// The accepted number of delayed acknowledgements per 4 MiB. A stalling sender has one for every second or third
    /// buffer, 12 to 60, each 40 ms of silence. The elapsed time says little on a busy machine, where some
    /// acknowledgements of any transfer are late.
    /// </summary>
    private const int Few = 10;

    private const int SmallSegment = 1448;
    private const int MaxSegmentOption = 2; // TCP_MAXSEG
    private const int Mebibyte = 1 << 20;

    /// <summary>The file with the least, initial and largest send buffer of this network namespace's sockets.</summary>
    private const string BufferLimits = "/proc/sys/net/ipv4/tcp_wmem";

    public static MatrixTheoryData<TlsMode, int, bool> Writes =>
        new([TlsMode.Kernel, TlsMode.DirectOpenSsl], [20 * 1024, 64 * 1024, Mebibyte, 16 * Mebibyte], [false, true]);

    private delegate Task Sending(KtlsStream stream, Socket socket, SafeFileHandle file, long count);

    [Fact]
    public async Task A_plain_sendfile_waits_for_acknowledgements_and_ours_does_not()
    {
        const long Size = 16 * Mebibyte; // on a busy machine some acknowledgements come in time by chance
        using PatternFile file = new((int)Size);
        Measure reference = await MeasureAsync(file, Size, SmallSegment, smallBuffer: true, OursAsync);
        Measure ours = await MeasureAsync(file, Size, 0, smallBuffer: true, OursAsync);
        Measure plain = await MeasureAsync(file, Size, 0, smallBuffer: true, PlainAsync);

        string measured = $"plain {plain}, ours {ours}, small segments {reference}";
        TestContext.Current.SendDiagnosticMessage(measured);
        Assert.True(plain.DelayedAcknowledgements >= Few, measured);
        Assert.True(ours.DelayedAcknowledgements < plain.DelayedAcknowledgements / 3, measured);
    }

    [Theory]
    [InlineData(4, false)]
    [InlineData(64, false)]
    [InlineData(64, true)]
    public async Task Files_of_every_size_go_without_waiting_for_acknowledgements(int mebibytes, bool smallBuffer)
    {
        using PatternFile file = new(mebibytes * Mebibyte);

        Measure ours = await MeasureAsync(file, (long)mebibytes * Mebibyte, 0, smallBuffer, OursAsync);

        TestContext.Current.SendDiagnosticMessage($"{mebibytes} MiB: {ours}");
        Assert.True(ours.DelayedAcknowledgements < Few * mebibytes / 4, $"{mebibytes} MiB: {ours}");
    }

    /// <summary>Each section is the last of its call, whose records share segments only if the buffer has space for all of them.</summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Sections_of_64_KiB_go_without_waiting_for_acknowledgements(bool smallBuffer)
    {
        const int Size = 8 * Mebibyte;
        using PatternFile file = new(Size);

        // Whether a connection begins to stall is chance.
        for (int i = 0; i < 4; i++)
        {
            Measure ours = await MeasureAsync(file, Size, 0, smallBuffer, SectionsAsync);

            TestContext.Current.SendDiagnosticMessage($"sections: {ours}");
            Assert.True(ours.DelayedAcknowledgements < Few * 2, $"connection {i}: {ours}");
        }
    }

    [Theory]
    [MemberData(nameof(Writes))]
    public async Task Writes_of_every_size_go_without_waiting_for_acknowledgements(TlsMode mode, int write, bool smallBuffer)
    {
        const int Size = 16 * Mebibyte;
        using PatternFile file = new(Size);

        Measure ours = await MeasureAsync(file, Size, 0, smallBuffer, (stream, _, handle, _) => WriteAsync(stream, handle, write), mode);

        TestContext.Current.SendDiagnosticMessage($"writes of {write}: {ours}");
        Assert.True(ours.DelayedAcknowledgements < Few * 4, $"writes of {write}: {ours}");
    }

    private static async Task WriteAsync(KtlsStream stream, SafeFileHandle file, int size)
    {
        byte[] buffer = new byte[size];
        long offset = 0;
        for (int count; (count = RandomAccess.Read(file, buffer, offset)) > 0; offset += count)
        {
            await stream.WriteAsync(buffer.AsMemory(0, count));
        }
    }

    private static async Task OursAsync(KtlsStream stream, Socket socket, SafeFileHandle file, long count) =>
        await stream.SendFileAsync(file, 0, count);

    private static async Task SectionsAsync(KtlsStream stream, Socket socket, SafeFileHandle file, long count)
    {
        const int Section = 64 * 1024;
        for (long offset = 0; offset < count; offset += Section)
        {
            await stream.SendFileAsync(file, offset, Section);
        }
    }

    /// <summary>Sends as much as the socket accepts and waits for space, repeatedly.</summary>
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

    /// <summary>
    /// Measures until the last byte arrives at a peer that reads as fast as it can, without decrypting.
    /// </summary>
    private static async Task<Measure> MeasureAsync(PatternFile file, long count, int segment, bool smallBuffer, Sending send, TlsMode mode = TlsMode.Kernel)
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
                mode, TlsMode.DirectOpenSsl, SslProtocols.Tls13, sockets: sockets);
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

    /// <summary>
    /// Returns DelayedACKs from TcpExt in /proc/net/netstat: a line of names, followed by one of values.
    /// </summary>
    private static long DelayedAcknowledgements()
    {
        string[][] lines = [.. File.ReadLines("/proc/net/netstat").Select(l => l.Split(' ')).Where(l => l[0] == "TcpExt:")];
        return long.Parse(lines[1][Array.IndexOf(lines[0], "DelayedACKs")], CultureInfo.InvariantCulture);
    }

    private readonly record struct Measure(TimeSpan Time, long DelayedAcknowledgements)
    {
        public override string ToString() => $"{Time.TotalSeconds:F2} s ({DelayedAcknowledgements} delayed acknowledgements)";
    }
}
