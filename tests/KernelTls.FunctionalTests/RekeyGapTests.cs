using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests the gap between a KeyUpdate and its new key, in which the kernel delivers nothing, however much has arrived.
/// Each read that meets the gap continues after it.
/// </summary>
[Trait("Pitfall", "17")]
[Trait("cell", "smoke")]
public class RekeyGapTests : KernelTest
{
    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task Data_behind_several_key_updates_is_read(bool readFirst)
    {
        using ForeignPeer listener = new();
        using ExternalProgram client = KeyUpdateTests.StartClient(listener);
        await using KtlsStream server = await listener.AcceptAsync(TlsMode.Kernel, SslProtocols.Tls13);
        bool goesOn = KtlsPlatform.Probe().CanRekey || !ReceivesTls13;
        int updates = goesOn ? 5 : 1;
        TlsStatistics before = TlsStatistics.Read();

        // A waiting read meets the gaps one by one; otherwise all of them have arrived before the first read.
        Task<string>? waiting = readFirst ? KeyUpdateTests.ReadLineAsync(server) : null;
        for (int i = 0; i < updates; i++)
        {
            await OpenSslProgram.UpdateSendKeyAsync(client, request: false);
        }

        await client.SayAsync("behind the updates");
        try
        {
            Assert.Equal(
                "behind the updates\n", await (waiting ?? KeyUpdateTests.ReadLineAsync(server)).InTime("the line behind the updates"));
        }
        catch (IOException e) when (!goesOn)
        {
            Assert.IsType<KtlsRekeyException>(e);
            return;
        }

        Assert.True(goesOn, "a cell that cannot rekey went on");
        Assert.Equal(ReceivesTls13 ? updates : 0, TlsStatistics.Read().ReceiveRekeyOk - before.ReceiveRekeyOk);
    }

    /// <summary>
    /// A KeyUpdate in two records: the kernel sees its first byte and delivers nothing before there is a new key
    /// (EKEYEXPIRED), for which OpenSSL would need the second record. The connection therefore fails at once. A kernel
    /// that cannot change keys has no such gap.
    /// </summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task A_key_update_in_two_records_ends_the_connection_at_once(bool blocking)
    {
        const byte Handshake = 22;
        const byte KeyUpdate = 24;
        await using TlsPair pair = await ConnectAsync(SslProtocols.Tls13);
        await pair.Client.WriteAsync(Pattern.At(0, 100)).InTime("data");
        await Pattern.ReceiveAsync(pair.Server, 100).InTime("the data before");
        SystemCalls.SendRecord(pair.ClientSocket, Handshake, KeyUpdate);

        Task<int> reading = blocking
            ? Limits.Blocking(() => pair.Server.Read(new byte[1]))
            : pair.Server.ReadAsync(new byte[1]).AsTask();
        if (!KtlsPlatform.Probe().CanRekey || !ReceivesTls13)
        {
            await reading.StaysPending();
            await pair.Server.DisposeAsync().InTime("disposing the stream under its read");
            await Assert.ThrowsAsync<IOException>(() => reading.InTime("the read to end"));
            return;
        }

        KtlsRekeyException failure = await Assert.ThrowsAsync<KtlsRekeyException>(() => reading.InTime("the read to fail"));
        Assert.Equal(KtlsRekeyFailure.FragmentedMessage, failure.Failure);
        Assert.Same(failure, await Assert.ThrowsAsync<KtlsRekeyException>(() => pair.Server.ReadAsync(new byte[1]).InTime("the next read")));
    }

    /// <summary>
    /// TLS 1.2 has no KeyUpdate, but Linux 6.14 and later looks for one: a Finished in records of one byte works unless
    /// one of its random bytes is 24, in which case the connection fails with the corresponding error.
    /// </summary>
    [Fact]
    public async Task A_Finished_in_parts_fails_if_a_part_begins_as_a_key_update()
    {
        const byte KeyUpdate = 24;
        const int Most = 500;
        bool looks = Environment.OSVersion.Version >= new Version(6, 14);
        int taken = 0;
        int others = 0;
        while (taken == 0 || others == 0)
        {
            Assert.True(taken + others < Most, $"{Most} handshakes: the byte was in {taken} of them");
            (byte[] finished, Exception? failure) = await FinishInPartsAsync();
            if (!finished.Contains(KeyUpdate))
            {
                Assert.Null(failure);
                others++;
                continue;
            }

            taken++;
            if (looks)
            {
                Assert.Equal(KtlsRekeyFailure.FragmentedMessage, Assert.IsType<KtlsRekeyException>(failure).Failure);
            }
            else
            {
                Assert.Null(failure);
            }
        }
    }

    /// <summary>
    /// Performs a TLS 1.2 handshake with a server whose Finished arrives in records of one byte, followed by a byte of
    /// data.
    /// </summary>
    private static async Task<(byte[] Finished, Exception? Failure)> FinishInPartsAsync()
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        byte[] finished = [];
        using TlsPeer peer = new(sockets.Server, SslProtocols.Tls12, isServer: true)
        {
            Meddle = async (sending, step) =>
            {
                if (step.Name != "Finished")
                {
                    return PeerChoice.Send;
                }

                finished = step.Content;
                await sending.SendAsync(step.Content.SelectMany(b => sending.Seal(step.Type, [b])).ToArray());
                return PeerChoice.Skip;
            },
        };
        await using SslStream client = Modes.Create(TlsMode.Kernel, new NetworkStream(sockets.Client, ownsSocket: true));
        Task<bool> serving = peer.ShakeHandsAsync();
        Exception? failure = await Record.ExceptionAsync(async () =>
        {
            await client.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls12)).InTime("the handshake");
            await serving.InTime("the peer's handshake");
            await peer.SendAsync(peer.Seal(RecordType.ApplicationData, [7]));
            Assert.Equal(1, await client.ReadAsync(new byte[1]).InTime("the data"));
        });
        await serving.InTime("the peer's end of the handshake");
        return (finished, failure);
    }
}
