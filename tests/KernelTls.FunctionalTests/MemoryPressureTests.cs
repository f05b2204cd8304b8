using System.Diagnostics;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests connections for which the kernel has no memory. Kernel TLS then refuses a record with EAGAIN even if the send buffer is
/// empty, and no event tells when it would take the record (docs/tuning.md). Every byte arrives, as with the stock stream.
/// </summary>
[Trait("loop", "outer")]
public class MemoryPressureTests(ITestOutputHelper output) : KernelTest
{
    /// <summary>What each end of a connection sends: together far more than there is memory for.</summary>
    private const int Size = 64_000;

    /// <summary>The number of asynchronous connections. Blocking ones need four threads each.</summary>
    private const int Connections = 200;
    private const int BlockingConnections = 40;

    private readonly PatternFile _file = new(Size);

    public static TheoryData<TlsMode> EachMode => [TlsMode.Stock, TlsMode.DirectOpenSsl, TlsMode.Kernel];

    public override async ValueTask DisposeAsync()
    {
        GC.SuppressFinalize(this);
        _file.Dispose();
        await base.DisposeAsync();
    }

    [Theory]
    [MemberData(nameof(EachMode))]
    [Trait("needs", "tcp_mem")]
    public Task Connections_that_use_up_the_memory_of_TCP_lose_no_byte(TlsMode mode) => UseUpMemoryAsync(mode, blocking: false);

    /// <summary>Weekly: with so few connections, all senders may wait for room, and none for memory, which the test requires.</summary>
    [Theory]
    [MemberData(nameof(EachMode))]
    [Trait("needs", "tcp_mem")]
    [Trait("loop", "weekly")]
    public Task Blocking_connections_that_use_up_the_memory_of_TCP_lose_no_byte(TlsMode mode) => UseUpMemoryAsync(mode, blocking: true);

    private async Task UseUpMemoryAsync(TlsMode mode, bool blocking)
    {
        List<TlsPair> pairs = await ConnectAsync(mode, blocking ? BlockingConnections : Connections);
        try
        {
            using TcpMemory memory = new();
            await ExchangeWithoutMemoryAsync(mode, pairs, blocking, () => TcpMemory.Used >= TcpMemory.Most);
        }
        finally
        {
            await DisposeAsync(pairs);
        }
    }

    /// <summary>The sockets of one memory cgroup have no memory left. The process and its other sockets do.</summary>
    [Theory]
    [MemberData(nameof(EachMode))]
    [Trait("cell", "race")]
    [Trait("needs", "memcg")]
    public async Task Connections_of_a_memory_cgroup_at_its_limit_lose_no_byte(TlsMode mode)
    {
        using MemoryGroup group = new();
        List<TlsPair> pairs = await group.RunAsync(() => ConnectAsync(mode, Connections));
        try
        {
            output.WriteLine($"{pairs.Count} idle connections: {group.Used}");
            group.LimitRest();
            await ExchangeWithoutMemoryAsync(mode, pairs, blocking: false, () => group.Refused);
        }
        finally
        {
            await DisposeAsync(pairs);
        }
    }

    /// <summary>The last records of a server's handshake, its tickets, go through kernel TLS.</summary>
    [Theory]
    [MemberData(nameof(EachMode))]
    [Trait("needs", "tcp_mem")]
    public async Task Handshakes_without_memory_complete(TlsMode mode)
    {
        List<TlsPair> holders = await ConnectAsync(TlsMode.DirectOpenSsl, Connections / 4);
        List<TlsPair> pairs = [];
        try
        {
            for (int i = 0; i < Connections / 4; i++)
            {
                pairs.Add(await TlsPair.CreateAsync(mode, mode));
            }

            using TcpMemory memory = new();
            Task[] holding = [.. holders.Select(p => Pattern.SendAsync(p.Client, Size))];
            await Limits.UntilAsync(() => TcpMemory.Used >= TcpMemory.Most, "the memory to be used up");

            Task handshakes = Task.WhenAll(pairs.SelectMany(p => new[]
            {
                p.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)),
                p.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.Tls13)),
            }));
            await Task.WhenAny(handshakes, Task.Delay(Limits.Absence));
            await Task.WhenAll([.. holding, .. holders.Select(p => Pattern.ReceiveAsync(p.Server, Size))]).InTime("the memory to be free again");

            await handshakes.InTime("the handshakes");
            await Task.WhenAll(pairs.Select(p => p.ExchangeAsync(10_000))).InTime("data after the handshakes");
        }
        finally
        {
            await DisposeAsync([.. holders, .. pairs]);
        }
    }

    /// <summary>All ends send, and no end reads before the memory is used up.</summary>
    private async Task ExchangeWithoutMemoryAsync(TlsMode mode, List<TlsPair> pairs, bool blocking, Func<bool> isUsedUp)
    {
        Stopwatch time = Stopwatch.StartNew();
        (SslStream Stream, Socket Socket, Task Sending)[] ends =
        [
            .. pairs.SelectMany(p => new[] { (p.Client, p.ClientSocket), (p.Server, p.ServerSocket) })
                .Select((e, i) => (e.Item1, e.Item2, blocking ? Limits.Blocking(() => Send(e.Item1)) : SendAsync(e.Item1, i))),
        ];
        await Limits.UntilAsync(isUsedUp, "the memory to be used up");
        if (mode == TlsMode.Kernel)
        {
            // These wait for memory, not for room, or there would be nothing to test.
            await Limits.UntilAsync(() => ends.Any(e => !e.Sending.IsCompleted && e.Socket.Poll(TimeSpan.Zero, SelectMode.SelectWrite)), "sends without memory");
        }

        TimeSpan filled = time.Elapsed;
        await Task.WhenAll(ends.SelectMany(e => new[] { e.Sending, blocking ? Limits.Blocking(() => Receive(e.Stream)) : Pattern.ReceiveAsync(e.Stream, Size) }))
            .InTime($"{pairs.Count} connections in mode {mode}");
        output.WriteLine($"{mode}: used up after {filled.TotalSeconds:F1} s, all bytes after {time.Elapsed.TotalSeconds:F1} s");
        await Task.WhenAll(pairs.Select(p => p.Client.ShutdownAsync())).InTime("close_notify to be sent");
        foreach (TlsPair pair in pairs)
        {
            Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime("the client's close_notify"));
        }
    }

    /// <summary>Sends in a way that depends on the number: small and large writes, a file, and writes with a change of keys between them.</summary>
    private async Task SendAsync(SslStream stream, int number)
    {
        switch (number % 4)
        {
            case 0 when stream is KtlsStream own:
                await own.SendFileAsync(_file.Handle, 0, Size);
                break;
            case 1 when stream is KtlsStream { Offload.Send: KtlsDataPath.Kernel } own && KtlsPlatform.Probe().CanRekey:
                await own.WriteAsync(Pattern.At(0, Size / 2));
                await own.UpdateSendKeyAsync(requestPeerUpdate: false);
                await own.WriteAsync(Pattern.Take(Size / 2, Size / 2));
                break;
            default:
                await Pattern.SendAsync(stream, Size, number % 4 == 2 ? 1_000 : 40_000);
                break;
        }
    }

    private static void Send(Stream stream)
    {
        const int Part = 2_000;
        for (int sent = 0; sent < Size; sent += Part)
        {
            stream.Write(Pattern.Take(Part, sent));
        }
    }

    private static void Receive(Stream stream)
    {
        byte[] bytes = new byte[Size];
        for (int received = 0; received < Size;)
        {
            int read = stream.Read(bytes.AsSpan(received));
            Assert.True(read > 0, $"The stream ended at {received} of {Size} bytes.");
            Pattern.AssertAt(received, bytes.AsSpan(received, read));
            received += read;
        }
    }

    private static async Task<List<TlsPair>> ConnectAsync(TlsMode mode, int count)
    {
        List<TlsPair> pairs = [];
        for (int i = 0; i < count; i++)
        {
            pairs.Add(await TlsPair.ConnectAsync(mode, SslProtocols.Tls13));
        }

        return pairs;
    }

    private static async Task DisposeAsync(IEnumerable<TlsPair> pairs)
    {
        foreach (TlsPair pair in pairs)
        {
            await pair.DisposeAsync();
        }
    }
}
