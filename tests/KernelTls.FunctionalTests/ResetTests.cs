using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// A connection that is reset. TCP gives what arrived before; kernel TLS tells the reset before records that its parser has
/// not come to, which is so where they arrived while the socket's lock was held.
/// </summary>
public class ResetTests : KernelTest
{
    private const int Size = 10_000;

    /// <summary>How often the parser comes first is the scheduler's affair.</summary>
    private const int Rounds = 20;

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task What_came_before_is_read_before_the_reset_is_told(SslProtocols version)
    {
        for (int round = 0; round < Rounds; round++)
        {
            await using TlsPair pair = await ConnectAsync(version);
            Outcome outcome = await ReadBehindALockAsync(pair, async () => await Pattern.SendAsync(pair.Client, Size));

            // A socket tells its error once: to the write, where that has looked first.
            IOException told = outcome.OfWrite ?? outcome.OfRead;
            Assert.Equal(SocketError.ConnectionReset, Assert.IsType<SocketException>(told.InnerException).SocketErrorCode);
            Assert.IsType<IOException>(outcome.OfRead);
        }
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task A_close_notify_before_is_an_end(SslProtocols version)
    {
        for (int round = 0; round < Rounds; round++)
        {
            await using TlsPair pair = await ConnectAsync(version);
            Outcome outcome = await ReadBehindALockAsync(pair, async () =>
            {
                await Pattern.SendAsync(pair.Client, Size);
                await pair.Client.ShutdownAsync().InTime();
                pair.ClientSocket.Shutdown(SocketShutdown.Send);
            });

            Assert.IsType<EndOfStreamException>(outcome.OfRead);
            Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime("the end again"));
        }
    }

    /// <summary>What the client sends, and its reset, meet a server whose write holds the socket's lock; then it reads.</summary>
    private static async Task<Outcome> ReadBehindALockAsync(TlsPair pair, Func<Task> send)
    {
        using MissingPage page = new();
        Task<Exception?> writing = Task.Run(() => Record.Exception(() => pair.Server.Write(page.Memory)));
        page.AwaitReader();
        Task<IOException> reading = Task.Run(() => ReadToTheFailureAsync(pair.Server));
        await send();
        pair.ClientSocket.LingerState = new LingerOption(true, 0);
        pair.ClientSocket.Close();
        page.Supply();
        return new Outcome((IOException?)await writing.InTime("the server's write"), await reading.InTime("the server's reads"));
    }

    private static async Task<IOException> ReadToTheFailureAsync(SslStream stream)
    {
        await Pattern.ReceiveAsync(stream, Size);
        return await Assert.ThrowsAnyAsync<IOException>(async () => await stream.ReadExactlyAsync(new byte[1]));
    }

    private readonly record struct Outcome(IOException? OfWrite, IOException OfRead);
}
