using System.Diagnostics;
using System.Globalization;
using System.Net;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests a mixed load on a bad network: many connections, writes of all sizes in both directions, key changes, canceled
/// reads, and halves that close early. Every byte is compared. KERNELTLS_LOAD_SECONDS sets the duration.
/// </summary>
[Trait("loop", "outer")]
public class MixedLoadTests(ITestOutputHelper output) : KernelTest
{
    private const int Connections = 200;
    private const int MaxSegment = 500;
    private const int LargestWrite = 1 << 20;

    private static readonly TimeSpan s_duration = TimeSpan.FromSeconds(
        int.Parse(Environment.GetEnvironmentVariable("KERNELTLS_LOAD_SECONDS") ?? "180", CultureInfo.InvariantCulture));

    /// <summary>
    /// The time limit of a whole connection. A single slow operation on a congested network is not a hang.
    /// </summary>
    private static readonly TimeSpan s_limit = TimeSpan.FromMinutes(10);

    private long _bytes;
    private int _finished;
    private int _receiving;
    private int _updates;
    private int _cancelled;

    [Fact]
    public async Task Mixed_load_on_a_bad_network_is_intact_and_leaves_nothing()
    {
        using NetworkNamespace network = new();
        await network.RunAsync("ip", "link", "set", "lo", "up").InTime();
        await network.RunAsync("modprobe", "sch_netem").InTime();
        await network.RunAsync(
            "tc", "qdisc", "add", "dev", "lo", "root", "netem", "limit", "100000", "delay", "2ms", "1ms", "loss", "0.5%", "reorder", "2%")
            .InTime("netem on the loopback");
        using Socket listener = await network.RunAsync(Listen).InTime();

        await LoadAsync(network, listener, s_duration / 2);
        long before = Resident();
        await LoadAsync(network, listener, s_duration / 2);
        long after = Resident();

        TlsStatistics statistics = await network.RunAsync(TlsStatistics.ReadOfThread).InTime();
        output.WriteLine(
            $"{_finished} connections, {_bytes} bytes, {_updates} key updates asked for, {_cancelled} reads cancelled; resident {before >> 20} then {after >> 20} MiB; {statistics}");
        Assert.Equal(0, statistics.DecryptError);
        Assert.Equal(2 * _finished, statistics.SendSoftware);
        Assert.Equal(_receiving, statistics.ReceiveSoftware);
        Assert.True(_cancelled > 0, "no read was cancelled");
        Assert.True(_updates > 0 || !KtlsPlatform.Probe().CanRekey, "no key was changed");
        Assert.Empty(NetworkNamespace.StrayThreads());
        Assert.True(after - before < 32 << 20, $"{before >> 20} MiB resident, after as much again {after >> 20} MiB");
    }

    private async Task LoadAsync(NetworkNamespace network, Socket listener, TimeSpan duration)
    {
        Stopwatch clock = Stopwatch.StartNew();
        int seed = _finished;
        await AllOrFirstFailure([.. Enumerable.Range(0, Connections).Select(async lane =>
        {
            Random random = new(seed + lane);
            while (clock.Elapsed < duration)
            {
                SocketPair sockets = await network.RunAsync(() => Connect(listener)).WaitAsync(s_limit);
                SslProtocols version = random.Next(4) == 0 ? SslProtocols.Tls12 : SslProtocols.Tls13;
                string what = $"{version} from {sockets.Client.LocalEndPoint}, begun after {clock.Elapsed.TotalSeconds:F0} s";
                long work = ThreadPool.CompletedWorkItemCount;
                await using TlsPair pair = TlsPair.Create(sockets, TlsMode.Kernel, TlsMode.Kernel);
                try
                {
                    await ConverseAsync(pair, version, random).WaitAsync(s_limit);
                }
                catch (Exception e)
                {
                    Assert.Fail(
                        $"{what}: {e}\n{_finished} others have ended, {ThreadPool.CompletedWorkItemCount - work} work items since; {_updates} key updates\n"
                        + $"{await network.RunAsync(TlsStatistics.ReadOfThread)}\n{await network.CaptureAsync("ss", "-tiemn")}");
                }

                Interlocked.Increment(ref _finished);
                Interlocked.Add(ref _receiving, ReceivingEnds(version));
            }
        })]);
    }

    private async Task ConverseAsync(TlsPair pair, SslProtocols version, Random random)
    {
        await AllOrFirstFailure(
            [pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(version)), pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(version))]);
        await AllOrFirstFailure(
            [
                .. HalfAsync((KtlsStream)pair.Client, (KtlsStream)pair.Server, new Random(random.Next())),
                .. HalfAsync((KtlsStream)pair.Server, (KtlsStream)pair.Client, new Random(random.Next())),
            ]);
    }

    /// <summary>Runs one direction of a connection to its end. The halves end at different times.</summary>
    private Task[] HalfAsync(KtlsStream from, KtlsStream to, Random random)
    {
        long size = Skewed(random, 2 * LargestWrite);
        return [SendAsync(from, size, new Random(random.Next())), ReceiveAsync(to, size, new Random(random.Next()))];
    }

    /// <summary>
    /// Waits for all tasks or the first failure: if one end failed, the other one waits, and that failure is the cause.
    /// </summary>
    private static async Task AllOrFirstFailure(List<Task> tasks)
    {
        while (tasks.Count > 0)
        {
            Task next = await Task.WhenAny(tasks);
            tasks.Remove(next);
            await next;
        }
    }

    private async Task SendAsync(KtlsStream stream, long size, Random random)
    {
        bool updates = KtlsPlatform.Probe().CanRekey && stream.SslProtocol == SslProtocols.Tls13;
        for (long sent = 0; sent < size;)
        {
            ReadOnlyMemory<byte> part = Pattern.At(sent, (int)Math.Min(size - sent, Skewed(random, LargestWrite)));
            await stream.WriteAsync(part);
            sent += part.Length;
            if (updates && random.Next(8) == 0)
            {
                await stream.UpdateSendKeyAsync(requestPeerUpdate: random.Next(2) == 0);
                Interlocked.Increment(ref _updates);
            }
        }

        await stream.ShutdownAsync();
    }

    private async Task ReceiveAsync(KtlsStream stream, long size, Random random)
    {
        byte[] buffer = new byte[64 * 1024];
        for (long received = 0; ;)
        {
            int capacity = random.Next(10) == 0 ? 0 : (int)Skewed(random, buffer.Length);
            using CancellationTokenSource source = new();
            if (random.Next(4) == 0)
            {
                source.CancelAfter(random.Next(5));
            }

            int read;
            try
            {
                read = await stream.ReadAsync(buffer.AsMemory(0, capacity), source.Token);
            }
            catch (OperationCanceledException)
            {
                Interlocked.Increment(ref _cancelled);
                continue;
            }

            Pattern.AssertAt(received, buffer.AsSpan(0, read));
            received += read;
            Interlocked.Add(ref _bytes, read);
            if (read == 0 && capacity > 0)
            {
                Assert.Equal(size, received);
                return;
            }
        }
    }

    /// <summary>Returns 1 to <paramref name="most"/>, with small numbers as likely as large ones.</summary>
    private static long Skewed(Random random, int most) => Math.Clamp((long)Math.Pow(most, random.NextDouble()), 1, most);

    private static Socket Listen()
    {
        Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        SetMaxSegment(listener);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen(Connections);
        return listener;
    }

    private static SocketPair Connect(Socket listener)
    {
        Socket client = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        SetMaxSegment(client);
        client.Connect(listener.LocalEndPoint!);
        Socket server = listener.Accept();
        Assert.Equal(client.LocalEndPoint, server.RemoteEndPoint);
        return new SocketPair(client, server);
    }

    private static void SetMaxSegment(Socket socket)
    {
        const int Tcp = 6;
        const int MaxSegmentOption = 2;
        socket.SetRawSocketOption(Tcp, MaxSegmentOption, BitConverter.GetBytes(MaxSegment));
    }

    private static long Resident()
    {
        for (int i = 0; i < 3; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }

        return Environment.WorkingSet;
    }
}
