using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests records that the kernel refuses. It reports such a record once, to the next call. If that is a write, the
/// connection ends as if a read had met the record: the peer receives the alert, and reads fail at once.
/// </summary>
public class RefusedRecordTests : KernelTest
{
    private const byte ApplicationData = 23;

    public static TheoryData<SslProtocols, string, string, bool> Refused()
    {
        TheoryData<SslProtocols, string, string, bool> data = [];
        foreach (SslProtocols version in Versions.Select(v => v.Data))
        {
            foreach (bool reads in (bool[])[false, true])
            {
                data.Add(version, "too long", "record_overflow", reads);
                data.Add(version, "too short", "bad_record_mac", reads);
                data.Add(version, "another version", "protocol_version", reads);
            }
        }

        return data;
    }

    [Theory]
    [MemberData(nameof(Refused))]
    public async Task A_write_that_meets_the_refusal_of_a_record_ends_the_connection(SslProtocols version, string record, string alert, bool reads)
    {
        if (version == SslProtocols.Tls13 && !ReceivesTls13)
        {
            // OpenSSL receives, and the kernel has no part in it.
            return;
        }

        using SocketPair sockets = await SocketPair.ConnectAsync();
        using TlsPeer peer = new(sockets.Server, version, isServer: true);
        await using SslStream client = Modes.Create(TlsMode.Kernel, new NetworkStream(sockets.Client, ownsSocket: true));
        Task<bool> serving = peer.ShakeHandsAsync();
        await client.HandshakeAsClientAsync(Handshakes.ClientOptions(version)).InTime("the handshake");
        Assert.True(await serving.InTime("the peer's handshake"));
        peer.Watch();
        Task<int>? reading = reads ? client.ReadAsync(new byte[100]).AsTask() : null;

        await peer.SendAsync(record switch
        {
            "too long" => (byte[])[ApplicationData, 3, 3, 0xff, 0xff, .. new byte[100]],
            "too short" => [ApplicationData, 3, 3, 0, 1, .. new byte[100]],
            _ => [ApplicationData, 9, 9, 0, 100, .. new byte[100]],
        });
        if (reading is null)
        {
            await TlsStatistics.UntilAsync(
                _ => sockets.Client.Poll(TimeSpan.Zero, SelectMode.SelectError), "the kernel to refuse the record");
        }

        IOException? written = null;
        while (written is null)
        {
            written = (IOException?)await Record.ExceptionAsync(() => client.WriteAsync(new byte[100]).AsTask().InTime("a write"));
        }

        IOException read = await Assert.ThrowsAsync<IOException>(
            () => (reading ?? client.ReadAsync(new byte[100]).AsTask()).InTime("the read"));
        if (!reads)
        {
            Assert.Same(read, written);
        }

        await client.DisposeAsync().AsTask().InTime("the disposal");
        await peer.Ended.InTime("the peer to see the end");

        // A read in progress takes the record, and the send that met it reports its own error. The kernel changes the error of a
        // record that a send meets to EBADMSG, for a read on another thread, which may be first.
        Assert.Contains(Assert.Single(peer.Alerts), reads ? [alert, "bad_record_mac"] : (string[])[alert]);
    }
}
