using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests connections that are reset. TCP delivers the data received before. Kernel TLS reports the reset before records
/// that its parser has not reached, which happens if they arrived while the socket's lock was held.
/// </summary>
[Trait("cell", "smoke")]
public class ResetTests : KernelTest
{
    private const int Size = 10_000;

    /// <summary>The number of rounds. How often the parser runs first depends on the scheduler.</summary>
    private const int Rounds = 20;

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task What_came_before_is_read_before_the_reset_is_told(SslProtocols version)
    {
        for (int round = 0; round < Rounds; round++)
        {
            await using TlsPair pair = await ConnectAsync(version);
            Outcome outcome = await ReadBehindALockAsync(pair, async () => await Pattern.SendAsync(pair.Client, Size));

            // A socket reports its error once: to the write if that is first.
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

            Assert.True(outcome.OfRead is EndOfStreamException, $"round {round}: {outcome.OfRead}; the write: {outcome.OfWrite}");
            Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime("the end again"));
        }
    }

    /// <summary>
    /// Makes the client's data and its reset arrive while the server's write holds the socket's lock, and then reads.
    /// </summary>
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
