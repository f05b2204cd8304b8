using System.IO.Pipes;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests the arguments that SendFileAsync refuses. Nothing is sent, and the stream can still be used.
/// </summary>
public class SendFileArgumentTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.AllOfKtlsStream;

    [Theory]
    [MemberData(nameof(All))]
    public async Task Sections_of_no_file_are_refused(TlsMode mode, SslProtocols version)
    {
        using PatternFile file = new(100);
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        KtlsStream client = (KtlsStream)pair.Client;

        await Assert.ThrowsAsync<ArgumentNullException>("file", () => client.SendFileAsync(null!, 0, 1).InTime());
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>("offset", () => client.SendFileAsync(file.Handle, -1, 1).InTime());
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>("count", () => client.SendFileAsync(file.Handle, 0, -1).InTime());
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(
            "count", () => client.SendFileAsync(file.Handle, long.MaxValue, 1).InTime());
        await Assert.ThrowsAsync<ArgumentException>(() => client.SendFileAsync(new SafeFileHandle(), 0, 1).InTime());
        SafeFileHandle closed = File.OpenHandle(file.FullName);
        closed.Dispose();
        await Assert.ThrowsAsync<ObjectDisposedException>(() => client.SendFileAsync(closed, 0, 1).InTime());

        await AssertNothingWasSent(pair);
    }

    [Theory]
    [MemberData(nameof(All))]
    [Trait("Pitfall", "11")]
    public async Task A_pipe_is_refused_and_keeps_its_bytes(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        await using AnonymousPipeServerStream pipe = new(PipeDirection.Out);
        await using AnonymousPipeClientStream reader = new(PipeDirection.In, pipe.ClientSafePipeHandle);
        pipe.WriteByte(42);
        using SafeFileHandle handle = new(reader.SafePipeHandle.DangerousGetHandle(), ownsHandle: false);

        await Assert.ThrowsAsync<NotSupportedException>(() => ((KtlsStream)pair.Client).SendFileAsync(handle, 0, 1).InTime());

        Assert.Equal(42, await Limits.Blocking(reader.ReadByte).InTime("the byte in the pipe"));
        await AssertNothingWasSent(pair);
    }

    [Theory]
    [MemberData(nameof(All))]
    [Trait("Pitfall", "11")]
    public async Task A_file_that_cannot_be_read_is_refused(TlsMode mode, SslProtocols version)
    {
        using PatternFile file = new(100);
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        using SafeFileHandle writable = File.OpenHandle(file.FullName, FileMode.Open, FileAccess.Write, FileShare.ReadWrite);

        await Assert.ThrowsAsync<UnauthorizedAccessException>(
            () => ((KtlsStream)pair.Client).SendFileAsync(writable, 0, 100).InTime());

        await AssertNothingWasSent(pair);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_stream_that_cannot_be_written_to_says_so(TlsMode mode, SslProtocols version)
    {
        using PatternFile file = new(100);
        await using (TlsPair early = await TlsPair.CreateAsync(mode, TlsMode.Managed))
        {
            await Assert.ThrowsAsync<InvalidOperationException>(
                () => ((KtlsStream)early.Client).SendFileAsync(file.Handle, 0, 100).InTime());
        }

        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        KtlsStream client = (KtlsStream)pair.Client;
        await client.ShutdownAsync().InTime();
        foreach (int count in new[] { 0, 100 })
        {
            await Assert.ThrowsAsync<InvalidOperationException>(() => client.SendFileAsync(file.Handle, 0, count).InTime());
        }

        Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime());
        client.Dispose();
        foreach (int count in new[] { 0, 100 })
        {
            await Assert.ThrowsAsync<ObjectDisposedException>(() => client.SendFileAsync(file.Handle, 0, count).InTime());
        }
    }

    private static async Task AssertNothingWasSent(TlsPair pair)
    {
        byte[] buffer = new byte[10];
        await pair.Client.WriteAsync(new byte[] { 1, 2, 3 }).InTime();
        Assert.Equal(3, await pair.Server.ReadAsync(buffer).InTime());
        Assert.Equal([1, 2, 3], buffer[..3]);
    }
}
