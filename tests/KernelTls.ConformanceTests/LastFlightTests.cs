using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests data that arrives with the handshake's last flight, in one segment with it or split anywhere: OpenSSL must not
/// read any of it before the kernel has the key.
/// </summary>
/// <remarks>The last flight is the client's in TLS 1.3 and the server's in TLS 1.2.</remarks>
public class LastFlightTests
{
    private const int DataSize = 20;

    public static TheoryData<TlsMode, SslProtocols> All => Modes.AllOnOpenSsl;

    [Theory]
    [Trait("Pitfall", "7")]
    [MemberData(nameof(All))]
    public async Task Data_in_one_segment_with_Finished_is_read(TlsMode mode, SslProtocols version) =>
        await RunAsync(mode, version, held => held, Limits.Absence);

    [Theory]
    [Trait("Pitfall", "7")]
    [MemberData(nameof(All))]
    public async Task Data_cut_anywhere_behind_ChangeCipherSpec_is_read(TlsMode mode, SslProtocols version)
    {
        int step = Cell.IsLab ? 13 : 3;
        int held = int.MaxValue;
        for (int cut = 1; cut < held; cut += step)
        {
            held = await RunAsync(mode, version, _ => cut, TimeSpan.FromMilliseconds(10));
        }
    }

    /// <summary>
    /// All but a few bytes of a record have arrived: a read waits without a thread and ends when the rest arrives.
    /// </summary>
    [Theory]
    [Trait("Pitfall", "10")]
    [MemberData(nameof(All))]
    public async Task A_read_waits_for_the_rest_of_a_record(TlsMode mode, SslProtocols version) =>
        await RunAsync(mode, version, held => held - 5, Limits.Absence);

    /// <summary>
    /// Performs the handshake over a relay that passes the last flight and the data after it in two pieces.
    /// </summary>
    /// <returns>The number of bytes of both.</returns>
    private static async Task<int> RunAsync(TlsMode mode, SslProtocols version, Func<int, int> cutOf, TimeSpan pause)
    {
        bool clientIsLast = version == SslProtocols.Tls13;
        using HoldingRelay relay = await HoldingRelay.ConnectAsync(holdsClient: clientIsLast);
        await using TlsPair pair = TlsPair.Create(relay.Ends, mode, mode);
        Task client = pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(version));
        Task server = pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(version));
        (SslStream last, Task lastShakes, SslStream other, Task otherShakes) =
            clientIsLast ? (pair.Client, client, pair.Server, server) : (pair.Server, server, pair.Client, client);
        await lastShakes.InTime("the end that sends the last flight");
        await last.WriteAsync(Pattern.Take(DataSize));
        await Limits.UntilAsync(() => relay.HeldRecords == 3, "ChangeCipherSpec, Finished and the data to be held");

        int held = relay.Held;
        int cut = Math.Min(cutOf(held), held);
        await relay.SendAsync(cut);
        byte[] received = new byte[DataSize];
        Task reading = ReadAsync(other, otherShakes, received);
        if (cut < held)
        {
            await Task.Delay(pause);
            Assert.False(reading.IsCompleted, $"data was read of which {cut} of {held} bytes were there");
            await relay.SendAsync(held - cut);
        }

        await reading.InTime($"data of which {cut} of {held} bytes came first");
        Pattern.AssertAt(0, received);
        return held;
    }

    private static async Task ReadAsync(SslStream stream, Task shakes, byte[] received)
    {
        await shakes;
        await stream.ReadExactlyAsync(received);
    }
}
