using System.Globalization;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Interop;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Runs alone, because it measures the whole process.</summary>
[CollectionDefinition(nameof(LeakTests), DisableParallelization = true)]
public class Alone;

/// <summary>
/// Tests that thousands of handshakes, full, resumed and failed at each step, leak no descriptors, native connections
/// or memory.
/// </summary>
[Collection(nameof(LeakTests))]
[Trait("loop", "outer")]
public class LeakTests(ITestOutputHelper output)
{
    private const string Listening = "0A"; // TCP_LISTEN

    // Under emulation a handshake takes about twenty times as long.
    private static readonly int s_handshakes = int.Parse(
        Environment.GetEnvironmentVariable("KERNELTLS_HANDSHAKES") ?? "10000", CultureInfo.InvariantCulture);

#pragma warning disable CA1416 // Linux
    private static readonly CipherSuitesPolicy s_noKernelHas = new([TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256]);
#pragma warning restore CA1416

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    [Theory]
    [Trait("Pitfall", "20")]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Handshakes_leave_nothing_behind(TlsMode mode)
    {
        Func<Task>[] kinds =
        [
            () => MeetAsync(mode, SslProtocols.Tls13, resume: false),
            () => MeetAsync(mode, SslProtocols.Tls12, resume: false),
            () => MeetAsync(mode, SslProtocols.Tls13, resume: true),
            () => MeetAsync(mode, SslProtocols.Tls12, resume: true),
            () => FailAsync(mode, c => c.CertificateChainPolicy = null),
            () => FailAsync(mode, c => c.EnabledSslProtocols = SslProtocols.Tls12, s => s.EnabledSslProtocols = SslProtocols.Tls13),
            () => FailAsync(mode, server: s => s.ClientCertificateRequired = true),
            () => FailAsync(mode, server: s =>
            {
                s.ServerCertificateContext = null;
                s.ServerCertificateSelectionCallback = (_, _) => throw new InvalidDataException();
            }),
            () => FailAsync(mode, c => c.LocalCertificateSelectionCallback = (_, _, _, _, _) => throw new InvalidDataException()),
            () => LoseAsync(mode, bytes: 0),
            () => LoseAsync(mode, bytes: 100),
            () => LoseAsync(mode, bytes: 700),
            () => CancelAsync(mode),
        ];
        // Warm-up: pools, caches and heaps reach their final size.
        await RunAsync(kinds, s_handshakes / 2);
        Footprint before = await MeasureAsync();

        await RunAsync(kinds, s_handshakes);

        AssertNothingLeft("handshakes", before, await MeasureAsync());
    }

    /// <summary>
    /// The kernel is requested but accepts no keys: on a machine without the module the stock stream takes over; in a
    /// cell OpenSSL keeps the keys of a cipher that no kernel implements (OpenSSL 3.2 leaked there).
    /// </summary>
    [Fact]
    [Trait("Pitfall", "20")]
    [Trait("cell", "no-tls-module")]
    public async Task Fallbacks_leave_nothing_behind()
    {
        // CCM_8, the only TLS 1.3 suite that no kernel implements, is below OpenSSL's default security level.
        Func<Task>[] kinds = KtlsPlatform.Probe().IsSupported
            ? [() => FallBackAsync(SslProtocols.Tls12)]
            : [() => FallBackAsync(SslProtocols.Tls12), () => FallBackAsync(SslProtocols.Tls13)];
        await RunAsync(kinds, s_handshakes / 2);
        Footprint before = await MeasureAsync();

        await RunAsync(kinds, s_handshakes);

        AssertNothingLeft($"fallbacks ({KtlsPlatform.Probe().NotSupportedReason})", before, await MeasureAsync());
    }

    private void AssertNothingLeft(string what, Footprint before, Footprint after)
    {
        // A socket that disappeared belonged to an earlier test. Print it, so that it can be investigated.
        output.WriteLine(
            $"{s_handshakes} {what}: {before.Kilobytes} kB to {after.Kilobytes} kB; sockets gone: "
            + string.Join(", ", before.Sockets.Except(after.Sockets)));
        Assert.Equal(0, after.Connections);
        Assert.Empty(after.Sockets.Except(before.Sockets));

        // A leak of two kilobytes each would exceed this. The variation of the heaps, which levels out, does not.
        Assert.InRange(after.Kilobytes, 0, before.Kilobytes + (2 * Math.Max(6_000, s_handshakes)));
    }

    private static async Task FallBackAsync(SslProtocols version)
    {
        KtlsOptions preferred = new() { Mode = KtlsMode.Preferred };
        await using TlsPair pair = await TlsPair.CreateAsync(preferred, preferred);
        SslClientAuthenticationOptions client = Handshakes.ClientOptions(version);
        SslServerAuthenticationOptions server = Handshakes.ServerOptions(version);
#pragma warning disable CA1416 // Linux
        client.CipherSuitesPolicy = server.CipherSuitesPolicy = version == SslProtocols.Tls12 ? s_noKernelHas : null;
#pragma warning restore CA1416
        await Task.WhenAll(pair.Client.HandshakeAsClientAsync(client), pair.Server.HandshakeAsServerAsync(server)).InTime("a handshake");
        Assert.Equal(
            KtlsPlatform.Probe().IsSupported ? KtlsFallbackReason.CipherNotOffloadable : KtlsPlatform.Probe().NotSupportedReason,
            ((KtlsStream)pair.Client).Offload.SendFallbackReason);
    }

    private static async Task RunAsync(Func<Task>[] kinds, int count)
    {
        int next = -1;
        async Task WorkAsync()
        {
            for (int i = Interlocked.Increment(ref next); i < count; i = Interlocked.Increment(ref next))
            {
                await kinds[i % kinds.Length]();
            }
        }

        await Task.WhenAll(Enumerable.Range(0, 4).Select(_ => Task.Run(WorkAsync)));
    }

    private static async Task MeetAsync(TlsMode mode, SslProtocols version, bool resume)
    {
        await using Meeting meeting = await new Meeting(mode, mode, version)
        {
            ClientOptions = c => c.AllowTlsResume = resume,
        }.SucceedAsync();
    }

    private static async Task FailAsync(
        TlsMode mode, Action<SslClientAuthenticationOptions>? client = null, Action<SslServerAuthenticationOptions>? server = null)
    {
        await using Meeting meeting = await new Meeting(mode, mode, SslProtocols.None) { ClientOptions = client, ServerOptions = server }.RunAsync();
        Assert.False(meeting.ServerEnding.IsGood && meeting.ClientEnding.IsGood, "a handshake that had to fail went well");
    }

    /// <summary>Ends the connection within the server's flight.</summary>
    private static async Task LoseAsync(TlsMode mode, int bytes)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using SslStream client = Modes.Create(mode, new NetworkStream(sockets.Client));
        Task shaking = client.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls12));
        byte[] hello = new byte[5];
        await sockets.Server.ReceiveAsync(hello);
        byte[] record = new byte[bytes];
        if (bytes > 0)
        {
            new byte[] { 22, 3, 3, 4, 0, 2, 0, 3, 252, 3, 3 }.CopyTo(record, 0);
            await sockets.Server.SendAsync(record);
        }

        sockets.Server.Dispose();
        await Assert.ThrowsAnyAsync<IOException>(() => shaking.InTime("a handshake that breaks off"));
    }

    private static async Task CancelAsync(TlsMode mode)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        using CancellationTokenSource cancellation = new();
        await using SslStream server = Modes.Create(mode, new NetworkStream(sockets.Server));
        Task shaking = server.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.None), cancellation.Token);
        await cancellation.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => shaking.InTime("a cancelled handshake to end"));
    }

    private static async Task<Footprint> MeasureAsync()
    {
        await Until(() => SafeTlsConnectionHandle.Count == 0);
        for (int i = 0; i < 3; i++)
        {
            GC.Collect(GC.MaxGeneration, GCCollectionMode.Aggressive, blocking: true, compacting: true);
            GC.WaitForPendingFinalizers();
        }

        string resident = File.ReadLines("/proc/self/status").Single(l => l.StartsWith("VmRSS:", StringComparison.Ordinal));
        return new Footprint(
            OpenSockets(),
            SafeTlsConnectionHandle.Count,
            long.Parse(resident.Split(' ', StringSplitOptions.RemoveEmptyEntries)[1], CultureInfo.InvariantCulture));
    }

    /// <summary>
    /// Returns the process's sockets: their kind and, for TCP, both addresses and the state from /proc/net/tcp.
    /// Listeners are kept for the next connection (<see cref="SocketPair"/>).
    /// </summary>
    private static List<string> OpenSockets()
    {
        string[][] table = [.. File.ReadLines("/proc/net/tcp").Select(l => l.Split(' ', StringSplitOptions.RemoveEmptyEntries))];
        return
        [
            .. from descriptor in Directory.GetFiles("/proc/self/fd")
               let socket = new FileInfo(descriptor).LinkTarget
               where socket?.StartsWith("socket:[", StringComparison.Ordinal) == true
               let entry = table.FirstOrDefault(columns => socket == $"socket:[{columns[9]}]")
               where entry?[3] != Listening
               orderby socket
               select entry is null ? socket : $"{socket} {entry[1]} {entry[2]} {entry[3]}",
        ];
    }

    /// <summary>Waits until the finalizer has freed what a failed end left to it.</summary>
    private static async Task Until(Func<bool> condition)
    {
        for (int i = 0; i < 100 && !condition(); i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            await Task.Delay(20);
        }
    }

    private sealed record Footprint(IReadOnlyList<string> Sockets, int Connections, long Kilobytes);
}
