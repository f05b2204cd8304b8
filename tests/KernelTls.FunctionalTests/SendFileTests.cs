using System.Globalization;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using KernelTls.Interop;
using KernelTls.IO;
using KernelTls.Tests;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.FunctionalTests;

/// <summary>Tests files that the kernel itself sends. The conformance tests cover what holds in every mode.</summary>
[Trait("cell", "smoke")]
public class SendFileTests : KernelTest
{
    private const int FileSize = TlsPair.MoreThanFits;

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task The_kernel_encrypts_what_it_sends(SslProtocols version)
    {
        using PatternFile file = new(FileSize);
        await using TlsPair pair = await ConnectAsync(version);
        Assert.Equal(KernelConfiguration.Software, OffloadTests.Ask(pair.ClientSocket).SendConfiguration);
        long before = BytesWritten();

        Task sending = ((KtlsStream)pair.Client).SendFileAsync(file.Handle, 0, FileSize).AsTask();
        await Pattern.ReceiveAsync(pair.Server, FileSize).InTime();
        await sending.InTime();

        Assert.InRange(BytesWritten() - before, FileSize, FileSize + (FileSize / 10));
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task Cancelled_while_it_waits_for_its_first_byte_it_leaves_the_stream_usable(SslProtocols version)
    {
        using PatternFile file = new(FileSize);
        await using TlsPair pair = await ConnectAsync(version);
        pair.ShrinkBuffers();
        long filled = Fill(pair.ClientSocket, file.Handle);
        using CancellationTokenSource source = new();
        Task sending = ((KtlsStream)pair.Client).SendFileAsync(file.Handle, 0, FileSize, source.Token).AsTask();
        await sending.StaysPending();
        await source.CancelAsync();
        OperationCanceledException e = await Assert.ThrowsAnyAsync<OperationCanceledException>(() => sending.InTime());
        Assert.Equal(source.Token, e.CancellationToken);

        await Pattern.ReceiveAsync(pair.Server, filled).InTime();
        sending = ((KtlsStream)pair.Client).SendFileAsync(file.Handle, 0, FileSize).AsTask();
        await Pattern.ReceiveAsync(pair.Server, FileSize).InTime();
        await sending.InTime();
    }

    /// <summary>
    /// Tests the result of such a socket for a file that cannot be spliced: nothing is sent, and reading takes over.
    /// </summary>
    [Fact]
    [Trait("Pitfall", "14")]
    public async Task A_file_system_that_cannot_is_no_failure()
    {
        const string Name = "/proc/self/auxv";
        byte[] content = File.ReadAllBytes(Name);
        using SafeFileHandle file = File.OpenHandle(Name);
        await using TlsPair pair = await ConnectAsync(SslProtocols.Tls13);
        long offset = 0;
        Assert.Equal(-1, SystemCalls.SendFile(pair.ClientSocket.SafeHandle, file, ref offset, content.Length));
        Assert.Equal(SystemCalls.InvalidArgument, Marshal.GetLastPInvokeError());

        await ((KtlsStream)pair.Client).SendFileAsync(file, 0, content.Length).InTime();

        byte[] received = new byte[content.Length];
        await pair.Server.ReadExactlyAsync(received).InTime();
        Assert.Equal(content, received);
    }

    /// <summary>
    /// The request arrives during the file. The answer, a control record too, must not be sent in the middle of it.
    /// </summary>
    [Fact]
    [Trait("Pitfall", "3")]
    [Trait("Pitfall", "14")]
    public async Task The_peer_asks_for_new_keys_while_a_file_is_sent()
    {
        using PatternFile file = new(FileSize);
        await using TlsPair pair = await TlsPair.ConnectAsync(TlsMode.Kernel, TlsMode.DirectOpenSsl, SslProtocols.Tls13);
        pair.ShrinkBuffers();
        KtlsStream client = (KtlsStream)pair.Client;
        Task sending = client.SendFileAsync(file.Handle, 0, FileSize).AsTask();
        await sending.StaysPending();
        TlsStatistics before = TlsStatistics.Read();
        byte[] answer = new byte[3];
        Task reading = client.ReadExactlyAsync(answer).AsTask();

        await ((KtlsStream)pair.Server).UpdateSendKeyAsync(requestPeerUpdate: true).InTime();
        if (client.Offload.IsComplete && !KtlsPlatform.Probe().CanRekey)
        {
            await Assert.ThrowsAsync<KtlsRekeyException>(() => reading.InTime());

            // Nothing follows the alert, which is lost if the socket has no space for it. In that case the end of the
            // connection informs the peer.
            Task receiving = Assert.ThrowsAnyAsync<IOException>(() => Pattern.ReceiveAsync(pair.Server, FileSize).InTime());
            await Assert.ThrowsAsync<KtlsRekeyException>(() => sending.InTime("the file to be given up"));
            await client.DisposeAsync();
            await receiving;
            return;
        }

        await pair.Server.WriteAsync(new byte[] { 1, 2, 3 }).InTime();
        await reading.InTime();
        await Pattern.ReceiveAsync(pair.Server, FileSize).InTime();
        await sending.InTime();
        if (!KtlsPlatform.Probe().CanRekey)
        {
            await Assert.ThrowsAsync<KtlsRekeyException>(() => client.WriteAsync(new byte[1]).InTime());
            return;
        }

        sending = client.SendFileAsync(file.Handle, 0, FileSize).AsTask();
        await Pattern.ReceiveAsync(pair.Server, FileSize).InTime();
        await sending.InTime();
        Assert.Equal(1, TlsStatistics.Read().ReceiveRekeyOk - before.ReceiveRekeyOk);
        Assert.Equal(1, TlsStatistics.Read().SendRekeyOk - before.SendRekeyOk);
    }

    [Fact]
    [Trait("Pitfall", "15")]
    public async Task Zero_copy_is_off_unless_it_is_asked_for()
    {
        foreach (bool wanted in new[] { false, true })
        {
            await using TlsPair pair = await TlsPair.ConnectAsync(
                TlsMode.Kernel, SslProtocols.Tls13, tune: o => o.ZeroCopySendFile = wanted);
            byte[] value = new byte[4];
            pair.ClientSocket.GetRawSocketOption(SocketOptions.SolTls, SocketOptions.TlsSendZeroCopyReadOnly, value);
            Assert.Equal(wanted ? 1 : 0, BitConverter.ToInt32(value));
        }
    }

    /// <summary>
    /// Tests a file that is written to while it is sent. Software encryption reads a page once: the peer receives old
    /// or new bytes, and never a record that it cannot decrypt (KernelTest checks that). With a device and zero copies
    /// the result would be worse.
    /// </summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    [Trait("Pitfall", "15")]
    public async Task A_file_that_changes_meanwhile_is_sent_as_old_or_new_bytes(bool zeroCopy)
    {
        using PatternFile file = new(FileSize);
        await using TlsPair pair = await TlsPair.ConnectAsync(
            TlsMode.Kernel, SslProtocols.Tls12, tune: o => o.ZeroCopySendFile = zeroCopy);
        pair.ShrinkBuffers();
        Task sending = ((KtlsStream)pair.Client).SendFileAsync(file.Handle, 0, FileSize).AsTask();
        await sending.StaysPending();

        using (SafeFileHandle writable = File.OpenHandle(file.FullName, FileMode.Open, FileAccess.Write, FileShare.ReadWrite))
        {
            RandomAccess.Write(writable, new byte[FileSize], 0);
        }

        byte[] received = new byte[FileSize];
        await pair.Server.ReadExactlyAsync(received).InTime();
        await sending.InTime();
        Assert.True(received.AsSpan(0, 1_000).SequenceEqual(Pattern.At(0, 1_000).Span), "the first bytes were sent before");
        Assert.False(received.AsSpan(FileSize - 1_000).ContainsAnyExcept((byte)0), "the last bytes were not");
        byte[] old = Pattern.Take(FileSize);
        for (int i = 0; i < FileSize; i++)
        {
            if (received[i] != 0 && received[i] != old[i])
            {
                Assert.Fail($"The byte at {i} is {received[i]}, neither {old[i]} nor 0.");
            }
        }
    }

    /// <summary>
    /// Sends the file until there has been no space for a while, and returns the number of bytes sent.
    /// </summary>
    private static long Fill(Socket socket, SafeFileHandle file)
    {
        long offset = 0;
        do
        {
            while (SystemCalls.SendFile(socket.SafeHandle, file, ref offset, 1_000) > 0)
            {
            }

            Assert.Equal(SystemCalls.TryAgain, Marshal.GetLastPInvokeError());
        }
        while (socket.Poll(Limits.Absence, SelectMode.SelectWrite) || SystemCalls.SendFile(socket.SafeHandle, file, ref offset, 1_000) > 0);

        return offset;
    }

    /// <summary>
    /// Returns the bytes that system calls have written to files and from files to sockets. Sending memory does not
    /// count (/proc/self/io).
    /// </summary>
    private static long BytesWritten() => long.Parse(
        File.ReadLines("/proc/self/io").Single(l => l.StartsWith("wchar:", StringComparison.Ordinal))[6..], CultureInfo.InvariantCulture);
}
