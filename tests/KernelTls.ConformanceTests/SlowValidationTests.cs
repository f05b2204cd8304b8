using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

#pragma warning disable CA1416 // Linux

/// <summary>
/// Tests that a slow validation callback delays only its own handshake, and not a concurrent disposal of the stream or
/// abort of the socket.
/// </summary>
public sealed class SlowValidationTests : IDisposable
{
    private readonly TaskCompletionSource _entered = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly ManualResetEventSlim _goOn = new();

    public static TheoryData<TlsMode, bool> OnOpenSsl =>
    [
        .. Modes.OnOpenSsl.Select(m => new TheoryDataRow<TlsMode, bool>(m, false)),
        .. Modes.OnOpenSsl.Select(m => new TheoryDataRow<TlsMode, bool>(m, true)),
    ];

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_certificate_after_the_handshake_is_judged_while_the_connection_ends(TlsMode mode, bool abort)
    {
        SocketPair sockets = await SocketPair.ConnectAsync();
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, SslProtocols.Tls13)
        {
            Sockets = sockets,
            ClientOptions = c => c.ClientCertificateContext = Certificates.ClientContext,
            ServerValidation = (_, certificate, _, _) => certificate is null || Judge(),
        }.SucceedAsync();
        Task<int> reading = meeting.Client.ReadAsync(new byte[1]).AsTask();
        Task negotiating = Task.Run(() => meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None));
        await _entered.Task.InTime("the validation callback");

        await EndAsync(meeting.Server, sockets.Server, abort);
        await AssertNextOwnerIsLeftAloneAsync();

        // The certificate was accepted, so the exception is not a refusal.
        Assert.IsType(EndOf(abort), await Record.ExceptionAsync(() => negotiating.InTime("the negotiation to end")));
        await Task.WhenAny(reading).InTime("the client to see the end");
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_certificate_in_the_handshake_is_judged_while_the_connection_ends(TlsMode mode, bool abort)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using SslStream client = Modes.Create(
            mode, new NetworkStream(sockets.Client, ownsSocket: true), validation: (_, _, _, _) => Judge());
        await using SslStream server = Modes.Create(TlsMode.Stock, new NetworkStream(sockets.Server, ownsSocket: true));
        Task serving = server.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.Tls13));
        Task connecting = Task.Run(() => client.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)));
        await _entered.Task.InTime("the validation callback");

        await EndAsync(client, sockets.Client, abort);
        await AssertNextOwnerIsLeftAloneAsync();

        Assert.IsType(EndOf(abort), await Record.ExceptionAsync(() => connecting.InTime("the handshake to end")));
        await Task.WhenAny(serving).InTime("the server to see the end");
    }

    public void Dispose()
    {
        _goOn.Set();
        _goOn.Dispose();
    }

    private static Type EndOf(bool abort) => abort ? typeof(ObjectDisposedException) : typeof(IOException);

    private async Task EndAsync(SslStream stream, Socket socket, bool abort)
    {
        try
        {
            await (abort
                ? Limits.Blocking(() => socket.Close(0)).InTime("aborting the socket while its certificate is judged")
                : Limits.Blocking(stream.Dispose).InTime("disposing the stream while its certificate is judged"));
        }
        catch
        {
            _goOn.Set();
            throw;
        }
    }

    /// <summary>
    /// Asserts that the next connection with the descriptor's number is not affected by the callback's return.
    /// </summary>
    private async Task AssertNextOwnerIsLeftAloneAsync()
    {
        using SocketPair next = await SocketPair.ConnectAsync();
        _goOn.Set();
        Task<int> either = await Task.WhenAny(
            next.Client.ReceiveAsync(new byte[100]), next.Server.ReceiveAsync(new byte[100]), NothingAsync());
        Assert.Equal(-1, await either);

        static async Task<int> NothingAsync()
        {
            await Task.Delay(Limits.Absence);
            return -1;
        }
    }

    private bool Judge()
    {
        _entered.TrySetResult();
        Assert.True(_goOn.Wait(4 * Limits.Wait), "nobody let the callback go on");
        return true;
    }
}
