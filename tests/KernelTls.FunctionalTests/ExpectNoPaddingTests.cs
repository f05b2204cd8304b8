using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// What the kernel counts while a peer pads its records, or does not, and this end expects no padding, or does not care. The
/// data is right in each case.
/// </summary>
[Trait("Pitfall", "16")]
public class ExpectNoPaddingTests : KernelTest
{
    private const int SolTls = 282;
    private const int ExpectNoPad = 4;
    private const int Size = 400_000;
    private static readonly string[] s_padding = ["-record_padding", "512"];

    [Theory]
    [InlineData(true, true)]
    [InlineData(true, false)]
    [InlineData(false, true)]
    [InlineData(false, false)]
    public async Task Padded_records_are_decrypted_twice_where_none_are_expected(bool expectNone, bool padding)
    {
        using ForeignPeer listener = new();
        using TemporaryDirectory directory = new();
        using ExternalProgram client = OpenSslProgram.Connect(
            listener, directory, SslProtocols.Tls13, ["-max_send_frag", "1000", .. padding ? s_padding : []]);
        (KtlsStream server, Socket socket) = await listener.AcceptAsync(
            new KtlsOptions { Mode = KtlsMode.Preferred, ExpectNoPadding = expectNone });
        await using KtlsStream closing = server;
        Assert.Equal(expectNone && ReceivesTls13, IsSet(socket));
        TlsStatistics before = TlsStatistics.Read();

        Task sending = client.Input.WriteAsync(Pattern.Take(Size)).AsTask();
        await client.Input.FlushAsync();
        await Pattern.ReceiveAsync(server, Size).InTime("the program's data");
        await sending.InTime("the program to take its input");

        TlsStatistics after = TlsStatistics.Read();
        long retries = after.DecryptRetry - before.DecryptRetry;
        long violations = after.NoPaddingViolation - before.NoPaddingViolation;
        if (expectNone && padding && ReceivesTls13)
        {
            Assert.True(violations > 0, "no violation was counted");
            Assert.Equal(violations, retries);
        }
        else
        {
            Assert.Equal((0, 0), (retries, violations));
        }
    }

    /// <summary>Tickets are no data: that is what each of the few other retries is.</summary>
    [Fact]
    public async Task Between_two_ends_that_do_not_pad_only_control_records_are_decrypted_twice()
    {
        KtlsOptions options = new() { Mode = KtlsMode.Preferred, ExpectNoPadding = true };
        TlsStatistics before = TlsStatistics.Read();
        await using TlsPair pair = await TlsPair.CreateAsync(options, options);
        await Task.WhenAll(
            pair.Client.ShakeClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)),
            pair.Server.ShakeServerAsync(Handshakes.ServerOptions(SslProtocols.Tls13))).InTime("a handshake");

        await pair.ExchangeAsync();

        TlsStatistics after = TlsStatistics.Read();
        Assert.Equal(before.NoPaddingViolation, after.NoPaddingViolation);
        Assert.InRange(after.DecryptRetry - before.DecryptRetry, 0, 4);
    }

    [Fact]
    public async Task TLS_1_2_has_no_padding_and_the_kernel_is_not_asked()
    {
        KtlsOptions options = new() { Mode = KtlsMode.Preferred, ExpectNoPadding = true };
        List<string> refusals = Refusals.Collect();
        await using TlsPair pair = await TlsPair.CreateAsync(options, options);
        await Task.WhenAll(
            pair.Client.ShakeClientAsync(Handshakes.ClientOptions(SslProtocols.Tls12)),
            pair.Server.ShakeServerAsync(Handshakes.ServerOptions(SslProtocols.Tls12))).InTime("a handshake");

        Assert.Empty(refusals);
        Assert.False(IsSet(pair.ClientSocket));
        await pair.ExchangeAsync();
    }

    [Fact]
    public void The_cell_can_do_it_where_OpenSSL_gives_the_kernel_those_keys() =>
        Assert.Equal(ReceivesTls13, KtlsPlatform.CanExpectNoPadding);

    /// <summary>A socket whose receiving keys are not in the kernel refuses the question.</summary>
    private static bool IsSet(Socket socket)
    {
        byte[] value = new byte[sizeof(int)];
        try
        {
            return socket.GetRawSocketOption(SolTls, ExpectNoPad, value) == value.Length && BitConverter.ToInt32(value) == 1;
        }
        catch (SocketException)
        {
            return false;
        }
    }
}
