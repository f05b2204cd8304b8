using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

#pragma warning disable CA1416 // Linux

/// <summary>
/// Tests data that precedes the certificate which a server requests after the handshake (RFC 8446, section 4.6.2).
/// </summary>
public class PostHandshakeDataTests
{
    /// <summary>
    /// A number of records after which a sender has processed control records, which it does every 64 records.
    /// </summary>
    private const int MoreThanALook = 200;

    /// <summary>A number of bytes that a server does not keep while it waits for a certificate.</summary>
    private const int MuchData = 16 * 1024 + 1;

    private const int LittleData = 1_000;

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    public static TheoryData<TlsMode, int, bool> DataBefore
    {
        get
        {
            TheoryData<TlsMode, int, bool> all = [];
            foreach (TlsMode mode in Modes.OnOpenSsl)
            {
                foreach (int size in new[] { 1, 5_500, MuchData - 1 })
                {
                    all.Add(mode, size, true);
                    all.Add(mode, size, false);
                }
            }

            return all;
        }
    }

    /// <summary>
    /// Data may precede the certificate, whether the client sent it before or after the request (RFC 8446, section 4.6.2). SslStream of
    /// .NET 10 gives up the certificate, and that of .NET 11 the connection.
    /// </summary>
    [Theory]
    [MemberData(nameof(DataBefore))]
    public async Task Data_before_the_certificate_is_kept_for_later_reads(TlsMode mode, int size, bool isAsked)
    {
        SocketPair sockets = await SocketPair.ConnectAsync();
        await using Meeting meeting = await PostHandshakeCertificateTests.MeetAsync(mode, "server", [], sockets);
        Task negotiating = isAsked ? meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None) : Task.CompletedTask;
        if (isAsked)
        {
            await ArrivesAsync(sockets.Client, "the server's request");
        }

        for (int i = 0; i < size; i += LittleData)
        {
            await meeting.Client.WriteAsync(Pattern.At(i, Math.Min(LittleData, size - i))).InTime("data before the answer");
        }

        Task<int> reading = meeting.Client.ReadAsync(new byte[1]).AsTask();
        await (isAsked ? negotiating : meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None)).InTime("the certificate");

        Assert.NotNull(meeting.Server.RemoteCertificate);
        byte[] data = new byte[size];
        await meeting.Server.ReadExactlyAsync(data).InTime("the data before the certificate");
        Pattern.AssertAt(0, data);
        await meeting.Server.WriteAsync(new byte[1]).InTime();
        Assert.Equal(1, await reading.InTime());
        await PostHandshakeCertificateTests.ExchangeAsync(meeting);
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Much_data_before_the_certificate_is_read_first(TlsMode mode)
    {
        await using Meeting meeting = await PostHandshakeCertificateTests.MeetAsync(mode, "server", []);
        await meeting.Client.WriteAsync(Pattern.Take(MuchData)).InTime();
        Task<int> reading = meeting.Client.ReadAsync(new byte[1]).AsTask();

        await Assert.ThrowsAsync<InvalidOperationException>(() => meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime());
        byte[] data = new byte[MuchData];
        await meeting.Server.ReadExactlyAsync(data).InTime();
        Pattern.AssertAt(0, data);
        await meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime();

        Assert.NotNull(meeting.Server.RemoteCertificate);
        await meeting.Server.WriteAsync(new byte[1]).InTime();
        Assert.Equal(1, await reading.InTime());
    }

    /// <summary>
    /// A server that only writes processes its peer's KeyUpdates from time to time, and receives the answer that the
    /// negotiation needs.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Writes_between_two_negotiations_leave_the_answer_to_the_second(TlsMode mode)
    {
        SocketPair sockets = await SocketPair.ConnectAsync();
        await using Meeting meeting = await PostHandshakeCertificateTests.MeetAsync(mode, "server", [], sockets);
        await meeting.Client.WriteAsync(new byte[MuchData]).InTime();
        await Assert.ThrowsAsync<InvalidOperationException>(() => meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime());
        await meeting.Server.ReadExactlyAsync(new byte[MuchData]).InTime();

        // The client answers when it reads. An earlier answer would have been received along with the data.
        Task receiving = Pattern.ReceiveAsync(meeting.Client, MoreThanALook);
        await ArrivesAsync(sockets.Server, "the client's answer");

        await SendByteByByteAsync(meeting.Server);
        await meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime();

        await receiving.InTime();
        Assert.NotNull(meeting.Server.RemoteCertificate);
        await PostHandshakeCertificateTests.ExchangeAsync(meeting);
    }

    /// <summary>
    /// OpenSSL writes nothing between a request and its answer, and only a read can detect the request.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_client_that_only_writes_goes_on_when_it_is_asked(TlsMode mode)
    {
        SocketPair sockets = await SocketPair.ConnectAsync();
        await using Meeting meeting = await PostHandshakeCertificateTests.MeetAsync(mode, "both", [], sockets);
        await meeting.Client.WriteAsync(new byte[MuchData]).InTime();
        await Assert.ThrowsAsync<InvalidOperationException>(() => meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime());
        await meeting.Server.ReadExactlyAsync(new byte[MuchData]).InTime();
        await ArrivesAsync(sockets.Client, "the server's request");

        await SendByteByByteAsync(meeting.Client);

        Task<int> reading = meeting.Client.ReadAsync(new byte[1]).AsTask();
        await meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime("the certificate");
        byte[] data = new byte[MoreThanALook];
        await meeting.Server.ReadExactlyAsync(data).InTime("the data before it");
        Pattern.AssertAt(0, data);
        await meeting.Server.WriteAsync(new byte[1]).InTime();
        Assert.Equal(1, await reading.InTime());
        Assert.NotNull(meeting.Server.RemoteCertificate);
        await PostHandshakeCertificateTests.ExchangeAsync(meeting);
    }

    private static async Task ArrivesAsync(Socket socket, string what) =>
        Assert.True(await Limits.Blocking(() => socket.Poll(Limits.Wait, SelectMode.SelectRead)).InTime(what), $"{what} did not arrive");

    private static async Task SendByteByByteAsync(SslStream stream)
    {
        for (int i = 0; i < MoreThanALook; i++)
        {
            await stream.WriteAsync(Pattern.At(i, 1)).InTime($"write {i}");
        }
    }
}
