using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

#pragma warning disable CA1416 // Linux

/// <summary>Tests the limit of handshake messages that a peer may send after the handshake.</summary>
public class MessageFloodTests
{
    public static TheoryData<TlsMode> Changing => KeyChangeTests.Changing;

    [Theory]
    [Trait("Pitfall", "4")]
    [MemberData(nameof(Changing))]
    public async Task A_flood_of_key_updates_ends_the_connection_with_a_typed_error(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
        await pair.Client.WriteAsync(Pattern.At(0, 1)).InTime();
        await Pattern.ReceiveAsync(pair.Server, 1).InTime();
        TlsStatistics before = KeyChangeTests.Statistics(mode);
        Task flood = Task.Run(async () =>
        {
            for (int i = 0; i < 10_000; i++)
            {
                await ((KtlsStream)pair.Client).UpdateSendKeyAsync(requestPeerUpdate: false);
            }
        });

        KtlsRekeyException e = await Assert.ThrowsAsync<KtlsRekeyException>(() => pair.Server.ReadAsync(new byte[1]).InTime());

        Assert.Equal(KtlsRekeyFailure.Flood, e.Failure);
        await Assert.ThrowsAsync<KtlsRekeyException>(() => pair.Server.ReadAsync(new byte[1]).InTime());
        if (mode == TlsMode.Kernel)
        {
            // One more for each second that passed.
            Assert.InRange(KeyChangeTests.Statistics(mode).ReceiveRekeyOk - before.ReceiveRekeyOk, 128, 128 + (long)Limits.Wait.TotalSeconds);
        }

        await pair.Server.DisposeAsync();
        await Task.WhenAny(flood).InTime("the flood to end");
    }

    [Theory]
    [MemberData(nameof(Changing))]
    public async Task Key_updates_between_data_are_no_flood(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
        for (int round = 0; round < 4; round++)
        {
            for (int i = 0; i < 100; i++)
            {
                await ((KtlsStream)pair.Client).UpdateSendKeyAsync(requestPeerUpdate: false).InTime();
            }

            await pair.Client.WriteAsync(Pattern.At(0, 1)).InTime();
            await Pattern.ReceiveAsync(pair.Server, 1).InTime();
        }
    }

    /// <summary>A client that was asked for its certificate may send anything else first.</summary>
    [Theory]
    [MemberData(nameof(Changing))]
    public async Task A_flood_in_place_of_a_certificate_ends_the_negotiation(TlsMode mode)
    {
        await using Meeting meeting = await new Meeting(mode, mode, SslProtocols.Tls13)
        {
            ClientOptions = c => c.ClientCertificateContext = Certificates.ClientContext,
        }.SucceedAsync();
        for (int i = 0; i < 200; i++)
        {
            await ((KtlsStream)meeting.Client).UpdateSendKeyAsync(requestPeerUpdate: false).InTime($"key update {i}");
        }

        KtlsRekeyException e = await Assert.ThrowsAsync<KtlsRekeyException>(
            () => meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime("the negotiation to end"));

        Assert.Equal(KtlsRekeyFailure.Flood, e.Failure);
        await Assert.ThrowsAsync<KtlsRekeyException>(() => meeting.Server.ReadAsync(new byte[1]).InTime());
    }
}
