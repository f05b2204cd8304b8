using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

#pragma warning disable CA1416 // Linux

/// <summary>
/// Tests NegotiateClientCertificateAsync with TLS 1.3 (RFC 8446, section 4.6.2) at the client and at the server.
/// </summary>
public class PostHandshakeCertificateTests
{
    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    public static TheoryData<TlsMode, string> Sides => Modes.With("client", "server", "both");

    public static TheoryData<TlsMode, string> Reads => Modes.With("asynchronous", "cancellable", "blocking");

    [Theory]
    [MemberData(nameof(Sides))]
    public async Task A_server_gets_the_certificate_and_both_ends_show_it(TlsMode mode, string side)
    {
        List<string> judged = [];
        await using Meeting meeting = await MeetAsync(mode, side, judged);
        Assert.Null(meeting.Server.RemoteCertificate);
        Assert.Null(meeting.Client.LocalCertificate);
        Assert.Equal([""], judged);

        await NegotiateAsync(meeting);

        Assert.Equal(["", "CN=a client None"], judged);
        Assert.Equal(Certificates.Client.GetCertHashString(), meeting.Server.RemoteCertificate!.GetCertHashString());
        Assert.Equal(Certificates.Client.GetCertHashString(), meeting.Client.LocalCertificate!.GetCertHashString());
        Assert.True(meeting.Server.IsMutuallyAuthenticated);
        Assert.True(meeting.Client.IsMutuallyAuthenticated);
        await ExchangeAsync(meeting);
    }

    [Theory]
    [MemberData(nameof(Reads))]
    public async Task However_the_client_reads_it_answers_and_gets_its_data(TlsMode mode, string read)
    {
        await using Meeting meeting = await MeetAsync(mode, "client", []);
        byte[] buffer = new byte[3];
        using CancellationTokenSource cancellation = new();
        Task<int> reading = read switch
        {
            "asynchronous" => meeting.Client.ReadAsync(buffer).AsTask(),
            "cancellable" => meeting.Client.ReadAsync(buffer, cancellation.Token).AsTask(),
            _ => Limits.Blocking(() => meeting.Client.Read(buffer)),
        };
        await meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime();
        await meeting.Server.WriteAsync(new byte[] { 1, 2, 3 }).InTime();

        Assert.Equal(3, await reading.InTime());
        Assert.Equal([1, 2, 3], buffer);
        Assert.NotNull(meeting.Server.RemoteCertificate);
    }

    /// <summary>The answer waits for the data in transit.</summary>
    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task A_client_in_the_midst_of_a_write_answers_behind_it(TlsMode mode)
    {
        await using Meeting meeting = await MeetAsync(mode, "client", []);
        const int Size = 4 << 20;
        Task<int> reading = meeting.Client.ReadAsync(new byte[1]).AsTask();
        Task writing = Pattern.SendAsync(meeting.Client, Size);

        // The server must read the data first.
        await Pattern.ReceiveAsync(meeting.Server, Size).InTime("the client's data");
        await writing.InTime();
        await meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime();
        await meeting.Server.WriteAsync(new byte[1]).InTime();

        Assert.Equal(1, await reading.InTime());
        Assert.NotNull(meeting.Server.RemoteCertificate);
    }

    /// <summary>
    /// The request arrives while a long write waits for room. The client sends the answer between two records of the
    /// write, and then the rest of the write.
    /// </summary>
    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task A_client_that_is_asked_in_the_midst_of_a_write_answers_and_goes_on(TlsMode mode)
    {
        SocketPair sockets = await SocketPair.ConnectAsync();
        sockets.Client.SendBufferSize = sockets.Server.ReceiveBufferSize = 128 * 1024;
        await using Meeting meeting = await new Meeting(mode, TlsMode.DirectOpenSsl, SslProtocols.Tls13)
        {
            Sockets = sockets,
            ClientOptions = c => c.ClientCertificateContext = Certificates.ClientContext,
        }.SucceedAsync();
        const int Size = TlsPair.MoreThanFits;
        Task<int> reading = meeting.Client.ReadAsync(new byte[1]).AsTask();
        Task writing = Pattern.SendAsync(meeting.Client, Size);
        await writing.StaysPending();

        int received = await NegotiateBetweenReadsAsync(meeting.Server);

        Assert.NotNull(meeting.Server.RemoteCertificate);
        byte[] rest = new byte[Size - received];
        await meeting.Server.ReadExactlyAsync(rest).InTime("the rest of the data");
        Pattern.AssertAt(received, rest);
        await writing.InTime("the write");
        await meeting.Server.WriteAsync(new byte[1]).InTime();
        Assert.Equal(1, await reading.InTime("the byte of the server"));
    }

    /// <summary>The answer waits for a write that is not read.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_blocking_read_that_has_to_answer_honours_ReadTimeout(TlsMode mode)
    {
        await using Meeting meeting = await MeetAsync(mode, "client", []);
        Task writing = meeting.Client.WriteAsync(new byte[TlsPair.MoreThanFits]).AsTask();
        await writing.StaysPending();
        Task negotiating = meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None);
        meeting.Client.ReadTimeout = 500;

        IOException e = await Assert.ThrowsAsync<IOException>(
            () => Limits.Blocking(() => meeting.Client.Read(new byte[1])).InTime("the read to time out"));

        Assert.Equal(SocketError.TimedOut, Assert.IsType<SocketException>(e.InnerException).SocketErrorCode);
        await meeting.Client.DisposeAsync().InTime();
        await meeting.Server.DisposeAsync().InTime();
        await Assert.ThrowsAsync<IOException>(() => writing.InTime("the aborted write"));
        await Task.WhenAny(negotiating).InTime("the negotiation to end, however the stock server ends it");
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task A_server_asks_once(TlsMode mode)
    {
        await using Meeting meeting = await MeetAsync(mode, "server", []);
        await NegotiateAsync(meeting);

        await Assert.ThrowsAsync<InvalidOperationException>(() => meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime());

        await ExchangeAsync(meeting);
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task A_refused_certificate_fails_the_negotiation(TlsMode mode)
    {
        bool accept = true;
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, SslProtocols.Tls13)
        {
            ClientOptions = c => c.ClientCertificateContext = Certificates.ClientContext,
            ServerValidation = (_, _, _, _) => accept,
        }.SucceedAsync();
        accept = false;
        Task<int> reading = meeting.Client.ReadAsync(new byte[1]).AsTask();

        await Assert.ThrowsAsync<AuthenticationException>(() => meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime());

        await meeting.Server.DisposeAsync();
        _ = await Record.ExceptionAsync(() => reading.InTime("the client to notice"));
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task Nothing_else_may_be_read_meanwhile(TlsMode mode)
    {
        await using Meeting meeting = await MeetAsync(mode, "server", []);
        Task negotiating = meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None);

        await Assert.ThrowsAsync<NotSupportedException>(() => meeting.Server.ReadAsync(new byte[1]).AsTask());

        Task<int> reading = meeting.Client.ReadAsync(new byte[1]).AsTask();
        await negotiating.InTime();
        await meeting.Server.WriteAsync(new byte[1]).InTime();
        Assert.Equal(1, await reading.InTime());
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Disposing_ends_a_negotiation(TlsMode mode)
    {
        foreach (bool asynchronously in new[] { false, true })
        {
            // The client does not read, so there is no answer.
            await using Meeting meeting = await MeetAsync(mode, "server", []);
            Task negotiating = meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None);
            await negotiating.StaysPending();

            if (asynchronously)
            {
                await meeting.Server.DisposeAsync().AsTask().InTime();
            }
            else
            {
                await Limits.Blocking(meeting.Server.Dispose).InTime();
            }

            await Assert.ThrowsAsync<IOException>(() => negotiating.InTime("the negotiation to end"));
        }
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Cancelling_ends_a_negotiation(TlsMode mode)
    {
        await using Meeting meeting = await MeetAsync(mode, "server", []);
        using CancellationTokenSource cancellation = new();
        Task negotiating = meeting.Server.NegotiateClientCertificateAsync(cancellation.Token);
        await negotiating.StaysPending();

        await cancellation.CancelAsync();

        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => negotiating.InTime("the negotiation to end"));
    }

    /// <summary>
    /// An intended difference: SslStream fails with an internal exception type, or not at all; these exceptions say
    /// what to do.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task What_cannot_be_asked_leaves_the_connection_as_it_was(TlsMode mode)
    {
        await using (Meeting unwilling = await new Meeting(TlsMode.Stock, mode, SslProtocols.Tls13).SucceedAsync())
        {
            // A stock client offers post-handshake authentication only if it has a certificate or a callback.
            if (Environment.Version.Major >= 11)
            {
                await unwilling.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime("the first negotiation");
            }

            await Assert.ThrowsAsync<InvalidOperationException>(
                () => unwilling.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime());
            await ExchangeAsync(unwilling);
        }

        await using Meeting older = await new Meeting(TlsMode.Stock, mode, SslProtocols.Tls12)
        {
            ClientOptions = c => c.ClientCertificateContext = Certificates.ClientContext,
        }.SucceedAsync();
        await Assert.ThrowsAsync<NotSupportedException>(() => older.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime());
        await ExchangeAsync(older);
    }

    internal static Task<Meeting> MeetAsync(TlsMode mode, string side, List<string> judged, SocketPair? sockets = null) =>
        new Meeting(side == "server" ? TlsMode.Stock : mode, side == "client" ? TlsMode.Stock : mode, SslProtocols.Tls13)
        {
            Sockets = sockets,
            ClientOptions = c => c.ClientCertificateContext = Certificates.ClientContext,
            ServerValidation = (_, certificate, _, errors) =>
            {
                judged.Add(certificate is null ? "" : $"{certificate.Subject} {errors}");
                return true;
            },
        }.SucceedAsync();

    /// <summary>Reads the data that precedes the answer, and returns its length.</summary>
    private static async Task<int> NegotiateBetweenReadsAsync(SslStream server)
    {
        byte[] buffer = new byte[1000];
        for (int received = 0; ;)
        {
            switch (await Record.ExceptionAsync(() => server.NegotiateClientCertificateAsync(CancellationToken.None).InTime()))
            {
                case null:
                    return received;
                case InvalidOperationException:
                    int read = await server.ReadAsync(buffer).InTime($"what follows byte {received}");
                    Assert.NotEqual(0, read);
                    Pattern.AssertAt(received, buffer.AsSpan(0, read));
                    received += read;
                    break;
                case { } e:
                    throw new InvalidOperationException($"The negotiation failed behind byte {received}.", e);
            }
        }
    }

    /// <summary>Negotiates while the client reads, which makes it answer.</summary>
    private static async Task NegotiateAsync(Meeting meeting)
    {
        Task<int> reading = meeting.Client.ReadAsync(new byte[1]).AsTask();
        await meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime();
        await meeting.Server.WriteAsync(new byte[1]).InTime();
        Assert.Equal(1, await reading.InTime());
    }

    internal static async Task ExchangeAsync(Meeting meeting)
    {
        byte[] received = new byte[1];
        await meeting.Client.WriteAsync(new byte[] { 77 }).InTime();
        await meeting.Server.ReadExactlyAsync(received).InTime();
        Assert.Equal(77, received[0]);
        await meeting.Server.WriteAsync(new byte[] { 78 }).InTime();
        await meeting.Client.ReadExactlyAsync(received).InTime();
        Assert.Equal(78, received[0]);
    }
}
