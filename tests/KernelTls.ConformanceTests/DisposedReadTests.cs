using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests what a read returns while another thread disposes the stream.</summary>
[Trait("cell", "race")]
public class DisposedReadTests
{
    /// <summary>Gets the modes, and whether reads block.</summary>
    public static TheoryData<TlsMode, bool> All => Modes.With(true, false);

    /// <summary>
    /// One thread reads and another disposes the stream. What a read returns must follow what the one before returned. The moments
    /// are left to chance; <c>ReceiveTurnTests</c> sets them.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_read_while_the_stream_is_disposed_returns_no_bytes_after_a_hole(TlsMode mode, bool blocking)
    {
        const int Streams = 40;
        for (int i = 0; i < Streams; i++)
        {
            await using TlsPair pair = await TlsPair.ConnectAsync(TlsMode.Stock, mode, SslProtocols.Tls13);
            Task sending = Pattern.SendAsync(pair.Client, long.MaxValue, chunk: 1_000);
            TaskCompletionSource started = new(TaskCreationOptions.RunContinuationsAsynchronously);
            Task<Exception?> reading = Task.Run(async () => await Record.ExceptionAsync(() => ReadAsync(pair.Server, blocking, started)));
            await started.Task.InTime("data");

            await Limits.Blocking(pair.Server.Dispose).InTime();

            Exception? end = await reading.InTime("the read to end");

            // A read of SslStream that begins in the midst of its disposal may find it not authenticated.
            bool isSslStreams = end is InvalidOperationException && !Modes.OnOpenSsl.Contains(mode);
            Assert.True(isSslStreams || end is ObjectDisposedException or IOException, $"{end}");
            await pair.Client.DisposeAsync();
            await Record.ExceptionAsync(() => sending.InTime("the writes to end"));
        }
    }

    private static async Task ReadAsync(SslStream stream, bool blocking, TaskCompletionSource started)
    {
        byte[] buffer = new byte[3_000];
        for (long position = 0; ;)
        {
            int count = blocking ? stream.Read(buffer) : await stream.ReadAsync(buffer);
            if (count == 0)
            {
                return;
            }

            Pattern.AssertAt(position, buffer.AsSpan(0, count));
            position += count;
            if (position > 50_000)
            {
                started.TrySetResult();
            }
        }
    }
}
