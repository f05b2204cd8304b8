using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using KernelTls.Interop;
using KernelTls.IO;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests the options that are set on the socket: the socket has them, or an event reports the refusal.
/// </summary>
public class TransportOptionTests
{
    private const int SolSocket = 1;
    private const int BusyPoll = 46;
    private const int PreferBusyPoll = 69;
    private const string NotPermitted = nameof(SocketError.AccessDenied);

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task The_socket_polls_as_long_as_it_was_told(TlsMode mode)
    {
        List<string> refused = Refusals.Collect();
        await using TlsPair pair = await ConnectAsync(mode, TimeSpan.FromMicroseconds(37));

        foreach (Socket socket in new[] { pair.ClientSocket, pair.ServerSocket })
        {
            Assert.Equal(37, Get(socket, BusyPoll));
            Assert.Equal(refused.Count == 0 ? 1 : 0, Get(socket, PreferBusyPoll));
        }

        Assert.All(refused, r => Assert.Equal($"SO_PREFER_BUSY_POLL {NotPermitted}", r));
        await pair.ExchangeAsync();
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Without_the_option_the_socket_is_left_as_it_is(TlsMode mode)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        int before = Get(sockets.Client, BusyPoll);
        await using TlsPair pair = await ConnectAsync(mode, null);

        Assert.Equal(before, Get(pair.ClientSocket, BusyPoll));
        Assert.Equal(0, Get(pair.ClientSocket, PreferBusyPoll));
    }

    /// <summary>A thread without CAP_NET_ADMIN starts the handshake.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_refusal_is_an_event_and_the_connection_goes_on(TlsMode mode)
    {
        Assert.SkipUnless(Environment.IsPrivilegedProcess, "a process without privileges has none to drop");
        List<string> refused = Refusals.Collect();
        await using TlsPair pair = await TlsPair.CreateAsync(Options(mode, TimeSpan.FromMicroseconds(20)), Options(mode, null));
        Task serving = pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.Tls13));

        Task client = await Limits.Blocking(() => WithoutPrivileges(
            () => pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)))).InTime("the handshake to start");

        await Task.WhenAll(client, serving).InTime("a handshake");
        Assert.Equal([$"SO_PREFER_BUSY_POLL {NotPermitted}"], refused);
        Assert.Equal(0, Get(pair.ClientSocket, PreferBusyPoll));
        await pair.ExchangeAsync();
    }

    [Fact]
    public async Task A_kernel_that_knows_no_such_option_is_an_event()
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        List<string> refused = Refusals.Collect();
        ConnectionInfo info = new() { KtlsReceive = 1, ProtocolVersion = 0x0304 };

        new TransportOptions(IsServer: false, null, ExpectNoPadding: false).ApplyToKernel(sockets.Client, info);
        Assert.Empty(refused);
        new TransportOptions(IsServer: false, null, ExpectNoPadding: true).ApplyToKernel(sockets.Client, info);

        Assert.StartsWith("TLS_RX_EXPECT_NO_PAD ", Assert.Single(refused), StringComparison.Ordinal);
    }

    private static KtlsOptions Options(TlsMode mode, TimeSpan? busyPoll)
    {
        KtlsOptions options = Modes.OptionsOf(mode);
        options.BusyPoll = busyPoll;
        return options;
    }

    private static async Task<TlsPair> ConnectAsync(TlsMode mode, TimeSpan? busyPoll)
    {
        TlsPair pair = await TlsPair.CreateAsync(Options(mode, busyPoll), Options(mode, busyPoll));
        await Task.WhenAll(
            pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)),
            pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.Tls13))).InTime("a handshake");
        return pair;
    }

    private static int Get(Socket socket, int name)
    {
        byte[] value = new byte[sizeof(int)];
        Assert.Equal(value.Length, socket.GetRawSocketOption(SolSocket, name, value));
        return BitConverter.ToInt32(value);
    }

    /// <summary>
    /// Runs work without privileges. The raw system call changes only the calling thread, while the library's function
    /// would change all threads.
    /// </summary>
    private static T WithoutPrivileges<T>(Func<T> work)
    {
        long setresuid = RuntimeInformation.ProcessArchitecture == Architecture.Arm64 ? 147 : 117;
        Assert.Equal(0, SystemCall(setresuid, -1, 65534, -1));
        try
        {
            return work();
        }
        finally
        {
            Assert.Equal(0, SystemCall(setresuid, -1, 0, -1));
        }
    }

    [DllImport("libc", EntryPoint = "syscall")]
    private static extern long SystemCall(long number, long first, long second, long third);
}
