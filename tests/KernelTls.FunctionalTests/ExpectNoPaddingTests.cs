using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests the kernel's counters with peers that pad their records or do not, and with and without ExpectNoPadding at
/// this end, whatever the counters say. The data is correct in each case.
/// </summary>
[Trait("Pitfall", "16")]
[Trait("cell", "smoke")]
public class ExpectNoPaddingTests : KernelTest
{
    private const int Size = 700;
    private const int Total = 50_000;
    private static readonly string[] s_padding = ["-record_padding", "512"];

    [Theory]
    [InlineData(true, true)]
    [InlineData(true, false)]
    [InlineData(false, true)]
    [InlineData(false, false)]
    public async Task Padded_records_are_decrypted_twice_where_none_are_expected(bool expectNone, bool padding)
    {
        const int Records = 20;
        using ForeignPeer listener = new();
        using TemporaryDirectory directory = new();
        using ExternalProgram client = Connect(listener, directory, padding);
        (KtlsStream server, Socket socket) = await AcceptAsync(listener, expectNone);
        await using KtlsStream closing = server;
        Assert.Equal(expectNone && KtlsPlatform.Probe().CanExpectNoPadding, NoPadding.IsExpected(socket));
        TlsStatistics before = TlsStatistics.Read();

        for (int i = 0; i < Records; i++)
        {
            await client.Input.WriteAsync(Pattern.At(i * Size, Size));
            await client.Input.FlushAsync();
            byte[] received = new byte[Size * 4];
            int count = await server.ReadAsync(received).InTime($"record {i}");
            Pattern.AssertAt(i * Size, received.AsSpan(0, count));
            Assert.Equal(Size, count);
        }

        TlsStatistics after = TlsStatistics.Read();
        int expected = expectNone && padding && KtlsPlatform.Probe().CanExpectNoPadding ? Records : 0;
        Assert.Equal((expected, expected), (after.DecryptRetry - before.DecryptRetry, after.NoPaddingViolation - before.NoPaddingViolation));
    }

    [Theory]
    [InlineData(true, true)]
    [InlineData(true, false)]
    [InlineData(false, true)]
    public async Task Many_records_in_one_receive_are_right(bool expectNone, bool padding)
    {
        using ForeignPeer listener = new();
        using TemporaryDirectory directory = new();
        using ExternalProgram client = Connect(listener, directory, padding);
        (KtlsStream server, _) = await AcceptAsync(listener, expectNone);
        await using KtlsStream closing = server;

        Pattern.AssertAt(0, await TransferAsync(client, server));
    }

    /// <summary>
    /// Some kernels accept the option and corrupt padded records; later ones of the same series do not. This test
    /// queries the kernel without the library, with the records of a third-party peer, and compares the result with the
    /// library's.
    /// </summary>
    [Fact]
    public async Task Whether_the_kernel_garbles_padded_records_is_known()
    {
        using ForeignPeer listener = new();
        using TemporaryDirectory directory = new();
        using ExternalProgram client = Connect(listener, directory, padding: true);
        (KtlsStream server, Socket socket) = await AcceptAsync(listener, expectNone: false);
        await using KtlsStream closing = server;
        if (ReceivesTls13)
        {
            NoPadding.Expect(socket);
        }

        byte[] received = await TransferAsync(client, server);

        Assert.Equal(NoPadding.IsExpected(socket) && received.AsSpan().SequenceEqual(Pattern.Take(Total)), KtlsPlatform.Probe().CanExpectNoPadding);
    }

    /// <summary>Tickets are not data: each of the few other retries is one of them.</summary>
    [Fact]
    public async Task Between_two_ends_that_do_not_pad_only_control_records_are_decrypted_twice()
    {
        KtlsOptions options = new() { Mode = KtlsMode.Preferred, ExpectNoPadding = KtlsExpectNoPadding.Always };
        TlsStatistics before = TlsStatistics.Read();
        await using TlsPair pair = await TlsPair.CreateAsync(options, options);
        await Task.WhenAll(
            pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)),
            pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.Tls13))).InTime("a handshake");

        await pair.ExchangeAsync();

        TlsStatistics after = TlsStatistics.Read();
        Assert.Equal(before.NoPaddingViolation, after.NoPaddingViolation);
        Assert.InRange(after.DecryptRetry - before.DecryptRetry, 0, 4);
    }

    [Fact]
    public async Task TLS_1_2_has_no_padding_and_the_kernel_is_not_asked()
    {
        KtlsOptions options = new() { Mode = KtlsMode.Preferred, ExpectNoPadding = KtlsExpectNoPadding.Always };
        List<string> refusals = Refusals.Collect();
        await using TlsPair pair = await TlsPair.CreateAsync(options, options);
        await Task.WhenAll(
            pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls12)),
            pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.Tls12))).InTime("a handshake");

        Assert.Empty(refusals);
        Assert.False(NoPadding.IsExpected(pair.ClientSocket));
        await pair.ExchangeAsync();
    }

    /// <summary>
    /// Linux 6.12.107 accepts the option and corrupts padded records; OpenSSL 3.0 installs no such keys in the kernel.
    /// </summary>
    [Fact]
    public async Task A_cell_that_cannot_do_it_says_so_and_goes_on()
    {
        KtlsOptions options = new() { Mode = KtlsMode.Preferred, ExpectNoPadding = KtlsExpectNoPadding.Always };
        List<string> refusals = Refusals.Collect();
        await using TlsPair pair = await TlsPair.CreateAsync(options, options);
        await Task.WhenAll(
            pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)),
            pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.Tls13))).InTime("a handshake");

        Assert.Equal(ReceivesTls13 && !KtlsPlatform.Probe().CanExpectNoPadding ? 2 : 0, refusals.Count);
        Assert.All(refusals, r => Assert.StartsWith("TLS_RX_EXPECT_NO_PAD ", r, StringComparison.Ordinal));
        Assert.Equal(KtlsPlatform.Probe().CanExpectNoPadding, NoPadding.IsExpected(pair.ClientSocket));
        await pair.ExchangeAsync();
    }

    /// <summary>
    /// Starts a client that sends its input in records of at most 1000 bytes, padded to a multiple of 512 or not.
    /// </summary>
    private static ExternalProgram Connect(ForeignPeer listener, TemporaryDirectory directory, bool padding) =>
        OpenSslProgram.Connect(
            listener.Port, directory, SslProtocols.Tls13, ["-max_send_frag", "1000", .. padding ? s_padding : []]);

    private static Task<(KtlsStream Stream, Socket Socket)> AcceptAsync(ForeignPeer listener, bool expectNone) =>
        listener.AcceptAsync(new KtlsOptions
        {
            Mode = KtlsMode.Preferred,
            ExpectNoPadding = expectNone ? KtlsExpectNoPadding.Always : KtlsExpectNoPadding.Never,
        });

    /// <summary>
    /// Transfers the data. Everything has arrived before the first read, which can then receive many records.
    /// </summary>
    private static async Task<byte[]> TransferAsync(ExternalProgram client, KtlsStream server)
    {
        await client.Input.WriteAsync(Pattern.Take(Total));
        client.Input.Close();
        Assert.Equal(0, await client.ExitAsync());

        byte[] bytes = new byte[Total];
        int first = await server.ReadAsync(bytes).InTime("the first records");
        Assert.True(first > 1000 || !ReceivesTls13, $"The first read took {first} bytes: one record.");
        for (int received = first; received < Total;)
        {
            int count = await server.ReadAsync(bytes.AsMemory(received)).InTime($"data behind byte {received}");
            Assert.True(count > 0, $"The stream ended at {received}.");
            received += count;
        }

        Assert.Equal(0, await server.ReadAsync(new byte[1]).InTime("the program's close_notify"));
        return bytes;
    }
}
