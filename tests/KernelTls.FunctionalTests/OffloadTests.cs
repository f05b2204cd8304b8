using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Handshake;
using KernelTls.Interop;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

[Trait("cell", "smoke")]
public class OffloadTests : KernelTest
{
    [Theory]
    [MemberData(nameof(Versions))]
    public async Task The_kernel_counts_each_connection_once_per_end_and_direction(SslProtocols version)
    {
        TlsStatistics before = TlsStatistics.Read();
        const int Connections = 5;
        List<TlsPair> pairs = [];
        for (int i = 0; i < Connections; i++)
        {
            pairs.Add(await ConnectAsync(version));
        }

        TlsStatistics after = TlsStatistics.Read();
        Assert.Equal(2 * Connections, after.SendSoftware - before.SendSoftware);
        Assert.Equal(ReceivingEnds(version) * Connections, after.ReceiveSoftware - before.ReceiveSoftware);
        Assert.Equal(2 * Connections, after.CurrentSendSoftware - before.CurrentSendSoftware);

        foreach (TlsPair pair in pairs)
        {
            await pair.DisposeAsync();
        }

        await TlsStatistics.UntilAsync(
            now => now.CurrentSendSoftware == before.CurrentSendSoftware && now.CurrentReceiveSoftware == before.CurrentReceiveSoftware,
            "the counters of current connections to fall back");
    }

    [Fact]
    public async Task TLS_1_2_is_in_the_kernel_both_ways_everywhere()
    {
        await using TlsPair pair = await ConnectAsync(SslProtocols.Tls12);

        KtlsOffload expected = new(KtlsDataPath.Kernel, KtlsFallbackReason.None, KtlsDataPath.Kernel, KtlsFallbackReason.None);
        Assert.Equal(expected, ((KtlsStream)pair.Client).Offload);
        Assert.Equal(expected, ((KtlsStream)pair.Server).Offload);
    }

    [Fact]
    public async Task TLS_1_3_is_in_the_kernel_as_far_as_the_cell_s_OpenSSL_goes()
    {
        bool both = Cell.Name.Split('-')[0] switch
        {
            "bookworm" => false,
            "trixie" or "forky" => true,
            _ => ReceivesTls13,
        };
        await using TlsPair pair = await ConnectAsync(SslProtocols.Tls13);

        KtlsOffload expected = both
            ? new(KtlsDataPath.Kernel, KtlsFallbackReason.None, KtlsDataPath.Kernel, KtlsFallbackReason.None)
            : new(KtlsDataPath.Kernel, KtlsFallbackReason.None, KtlsDataPath.OpenSsl, KtlsFallbackReason.OpenSslTooOld);
        Assert.Equal(expected, ((KtlsStream)pair.Client).Offload);
        Assert.Equal(expected, ((KtlsStream)pair.Server).Offload);
    }

    [Fact]
    public void The_cell_can_rekey_where_it_should()
    {
        if (Cell.IsLab)
        {
            Assert.Equal(Cell.Name.Split('-')[..2] is ["trixie" or "forky" or "openssl4", "7.2" or "7.3"], KtlsPlatform.Probe().CanRekey);
        }

        bool newKernel = Version.Parse(string.Join('.', KtlsPlatform.KernelRelease.Split('.', '-')[..2])) >= new Version(6, 14);
        Assert.Equal(newKernel && KtlsPlatform.Probe().OpenSslVersion >= new Version(3, 2), KtlsPlatform.Probe().CanRekey);
    }

    public static TheoryData<TlsCipherSuite, SslProtocols, int> Suites => new()
    {
        { TlsCipherSuite.TLS_AES_128_GCM_SHA256, SslProtocols.Tls13, 51 },
        { TlsCipherSuite.TLS_AES_256_GCM_SHA384, SslProtocols.Tls13, 52 },
        { TlsCipherSuite.TLS_AES_128_CCM_SHA256, SslProtocols.Tls13, 53 },
        { TlsCipherSuite.TLS_CHACHA20_POLY1305_SHA256, SslProtocols.Tls13, 54 },
        { TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, SslProtocols.Tls12, 51 },
        { TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, SslProtocols.Tls12, 52 },
        { TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_CCM, SslProtocols.Tls12, 53 },
        { TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, SslProtocols.Tls12, 54 },
    };

    [Theory]
    [MemberData(nameof(Suites))]
    public async Task Each_cipher_is_in_the_kernel_in_the_kernel_s_own_words(
        TlsCipherSuite suite, SslProtocols version, int kernelCipher)
    {
        await using TlsPair pair = await TlsPair.CreateAsync(TlsMode.Kernel, TlsMode.Kernel);
        await ShakeAsync(pair, version, suite);
        if (suite == TlsCipherSuite.TLS_AES_128_CCM_SHA256 && !ReceivesTls13)
        {
            Assert.Equal(
                new KtlsOffload(
                    KtlsDataPath.OpenSsl, KtlsFallbackReason.OpenSslTooOld, KtlsDataPath.OpenSsl, KtlsFallbackReason.OpenSslTooOld),
                ((KtlsStream)pair.Client).Offload);
            await ExchangeAsync(pair);
            return;
        }

        Modes.AssertIn(TlsMode.Kernel, pair.Client);
        Modes.AssertIn(TlsMode.Kernel, pair.Server);

        foreach (System.Net.Sockets.Socket socket in new[] { pair.ClientSocket, pair.ServerSocket })
        {
            SocketInfo info = Ask(socket);
            Assert.Equal(version == SslProtocols.Tls12 ? 0x0303 : 0x0304, info.Version);
            Assert.Equal(kernelCipher, info.Cipher);
            Assert.Equal(KernelConfiguration.Software, info.SendConfiguration);
            Assert.Equal(
                ReceivingEnds(version) == 2 ? KernelConfiguration.Software : KernelConfiguration.None, info.ReceiveConfiguration);
        }

        await ExchangeAsync(pair);
    }

    [Theory]
    [Trait("Pitfall", "12")]
    [InlineData(TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256)]
    [InlineData(TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_256_CCM)]
    public async Task A_cipher_that_no_kernel_has_stays_with_OpenSSL_and_data_flows(TlsCipherSuite suite)
    {
        TlsStatistics before = TlsStatistics.Read();
        await using TlsPair pair = await TlsPair.CreateAsync(TlsMode.Kernel, TlsMode.Kernel);
        await ShakeAsync(pair, SslProtocols.Tls12, suite);

        KtlsOffload expected = new(
            KtlsDataPath.OpenSsl, KtlsFallbackReason.CipherNotOffloadable, KtlsDataPath.OpenSsl, KtlsFallbackReason.CipherNotOffloadable);
        Assert.Equal(expected, ((KtlsStream)pair.Client).Offload);
        Assert.Equal(expected, ((KtlsStream)pair.Server).Offload);
        Assert.Equal(before.SendSoftware, TlsStatistics.Read().SendSoftware);
        await ExchangeAsync(pair);
    }

    [Fact]
    public async Task Required_kernel_TLS_that_cannot_be_had_is_a_typed_failure()
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using KtlsStream client = new(
            new System.Net.Sockets.NetworkStream(sockets.Client), false, new KtlsOptions { Mode = KtlsMode.Required });
        await using SslStream server = Modes.Create(TlsMode.Stock, new System.Net.Sockets.NetworkStream(sockets.Server));
        SslClientAuthenticationOptions options = Handshakes.ClientOptions(SslProtocols.Tls12);
        options.CipherSuitesPolicy = Only(TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256);
        SslServerAuthenticationOptions serverOptions = Handshakes.ServerOptions(SslProtocols.Tls12);
        serverOptions.CipherSuitesPolicy = options.CipherSuitesPolicy;
        Task serving = server.HandshakeAsServerAsync(serverOptions);

        KtlsNotAvailableException e = await Assert.ThrowsAsync<KtlsNotAvailableException>(
            () => client.AuthenticateAsClientAsync(options).InTime());

        Assert.Equal(KtlsFallbackReason.CipherNotOffloadable, e.Reason);
        await serving.InTime();
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task Required_kernel_TLS_that_can_be_had_is_had(SslProtocols version)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using KtlsStream client = new(
            new System.Net.Sockets.NetworkStream(sockets.Client), false, new KtlsOptions { Mode = KtlsMode.Required });
        await using SslStream server = Modes.Create(TlsMode.Stock, new System.Net.Sockets.NetworkStream(sockets.Server));
        Task serving = server.HandshakeAsServerAsync(Handshakes.ServerOptions(version));
        Task shaking = client.AuthenticateAsClientAsync(Handshakes.ClientOptions(version));

        if (ReceivingEnds(version) == 2)
        {
            await shaking.InTime();
            Assert.True(client.Offload.IsComplete);
        }
        else
        {
            KtlsNotAvailableException e = await Assert.ThrowsAsync<KtlsNotAvailableException>(() => shaking.InTime());
            Assert.Equal(KtlsFallbackReason.OpenSslTooOld, e.Reason);
        }

        await serving.InTime();
    }

    /// <summary>
    /// The server closes its half early: OpenSSL attaches "tls" when it has keys, and then the kernel refuses them.
    /// </summary>
    [Theory]
    [InlineData(KtlsMode.Preferred)]
    [InlineData(KtlsMode.Required)]
    public async Task A_peer_that_closed_before_the_keys_were_there_is_a_reason_of_its_own(KtlsMode mode)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using KtlsStream client = new(
            new System.Net.Sockets.NetworkStream(sockets.Client), false, new KtlsOptions { Mode = mode });
        await using SslStream server = Modes.Create(TlsMode.Stock, new System.Net.Sockets.NetworkStream(sockets.Server));
        SslClientAuthenticationOptions options = Handshakes.ClientOptions(SslProtocols.Tls13);
        options.RemoteCertificateValidationCallback = (_, _, _, _) =>
        {
            sockets.Server.Shutdown(System.Net.Sockets.SocketShutdown.Send);
            Assert.True(SpinWait.SpinUntil(() => SocketEligibility.HasPeerClosed(sockets.Client), Limits.Wait), "no FIN came");
            return true;
        };
        Task serving = server.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.Tls13));
        Task shaking = client.AuthenticateAsClientAsync(options);

        if (mode == KtlsMode.Required)
        {
            KtlsNotAvailableException e = await Assert.ThrowsAsync<KtlsNotAvailableException>(() => shaking.InTime());
            Assert.Equal(KtlsFallbackReason.PeerClosed, e.Reason);
        }
        else
        {
            await shaking.InTime();
            Assert.Equal(KtlsFallbackReason.PeerClosed, client.Offload.SendFallbackReason);
            Assert.Equal(0, await client.ReadAsync(new byte[1]).InTime("the end"));
            Assert.True(client.EndedWithoutCloseNotify);
        }

        await Task.WhenAny(serving).InTime("the server's end");
    }

    [Fact]
    public async Task What_the_platform_foresees_is_what_happens()
    {
        foreach (ITheoryDataRow row in Suites)
        {
            TlsCipherSuite suite = (TlsCipherSuite)row.GetData()[0]!;
            SslProtocols version = (SslProtocols)row.GetData()[1]!;
            await using TlsPair pair = await TlsPair.CreateAsync(TlsMode.Kernel, TlsMode.Kernel);
            await ShakeAsync(pair, version, suite);

            KtlsOffload offload = ((KtlsStream)pair.Client).Offload;
            Assert.Equal(KtlsPlatform.Probe().GetFallbackReason(KtlsDirections.Send, version, suite), offload.SendFallbackReason);
            Assert.Equal(KtlsPlatform.Probe().GetFallbackReason(KtlsDirections.Receive, version, suite), offload.ReceiveFallbackReason);
        }
    }

    /// <summary>
    /// The kernel announces a control record by failing a receive, which .NET treats as the end of the connection.
    /// </summary>
    [Theory]
    [MemberData(nameof(Versions))]
    public async Task Control_records_leave_the_sockets_connected(SslProtocols version)
    {
        await using TlsPair pair = await ConnectAsync(version);
        Assert.True(pair.ClientSocket.Connected, "after the client's handshake");
        Assert.True(pair.ServerSocket.Connected, "after the server's handshake");

        // TLS 1.3: the tickets precede the first byte.
        await pair.Server.WriteAsync(new byte[3]).InTime();
        Assert.Equal(1, await pair.Client.ReadAsync(new byte[1]).InTime());
        Assert.True(pair.ClientSocket.Connected, "after an asynchronous read");
        using CancellationTokenSource cancellation = new();
        Assert.Equal(1, await pair.Client.ReadAsync(new byte[1], cancellation.Token).InTime());
        Assert.Equal(1, pair.Client.Read(new byte[1]));

        await pair.Client.ShutdownAsync().InTime();
        Assert.Equal(0, pair.Server.Read(new byte[1]));
        Assert.True(pair.ServerSocket.Connected, "after close_notify");
    }

    [Fact]
    public async Task A_socket_that_has_keys_already_is_refused()
    {
        await using TlsPair outer = await ConnectAsync(SslProtocols.Tls12);
        foreach (KtlsMode mode in new[] { KtlsMode.Required, KtlsMode.Preferred })
        {
            await using KtlsStream inner = new(
                new System.Net.Sockets.NetworkStream(outer.ClientSocket, ownsSocket: false), false, new KtlsOptions { Mode = mode });

            InvalidOperationException e = await Assert.ThrowsAsync<InvalidOperationException>(
                () => inner.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls12)).InTime());

            Assert.Contains(nameof(KtlsOptions.AllowSocketReuse), e.Message, StringComparison.Ordinal);
        }
    }

#pragma warning disable CA1416 // Linux
    private static CipherSuitesPolicy Only(TlsCipherSuite suite) => new([suite]);
#pragma warning restore CA1416

    private static async Task ShakeAsync(TlsPair pair, SslProtocols version, TlsCipherSuite suite)
    {
        SslClientAuthenticationOptions client = Handshakes.ClientOptions(version);
        SslServerAuthenticationOptions server = Handshakes.ServerOptions(version);
        client.CipherSuitesPolicy = server.CipherSuitesPolicy = Only(suite);
        await Task.WhenAll(pair.Client.HandshakeAsClientAsync(client), pair.Server.HandshakeAsServerAsync(server)).InTime($"a handshake with {suite}");
        Assert.Equal(suite, pair.Client.NegotiatedCipherSuite);
    }

    private static async Task ExchangeAsync(TlsPair pair)
    {
        const int Size = 300_000;
        await Task.WhenAll(
            Pattern.SendAsync(pair.Client, Size),
            Pattern.SendAsync(pair.Server, Size, chunk: 10_000),
            Pattern.ReceiveAsync(pair.Client, Size),
            Pattern.ReceiveAsync(pair.Server, Size)).InTime("data both ways");
        await pair.Client.ShutdownAsync().InTime();
        Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime());
    }

    internal static unsafe SocketInfo Ask(System.Net.Sockets.Socket socket)
    {
        SocketInfo info;
        Assert.Equal(0, KtlsNative.KtlsNative_GetSocketInfo(socket.SafeHandle, &info));
        return info;
    }
}
