using System.Globalization;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests slow, misbehaving and numerous clients: the server behaves like the stock one.</summary>
[Trait("loop", "outer-kernel")]
public class DifficultClientTests
{
    private const int Size = 4 << 20;

    private static readonly string[] s_versions = ["1.1", "2.0"];
    private static readonly string[] s_paths = [$"/bytes/{Size}", "/file"];

    // Handshakes are slow in the lab.
    private static readonly int s_idle = int.Parse(
        Environment.GetEnvironmentVariable("KERNELTLS_IDLE") ?? (Cell.IsLab ? "50" : "2000"), CultureInfo.InvariantCulture);

    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(Cell.IsLab ? 10 : 2);

    public static TheoryData<TlsMode> All => [.. Modes.Costly];

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    public static TheoryData<TlsMode, string, string> EveryBody =>
        [.. from mode in Modes.Costly
            from version in s_versions
            from path in s_paths
            select new TheoryDataRow<TlsMode, string, string>(mode, version, path)];

    [Theory]
    [MemberData(nameof(EveryBody))]
    public async Task A_slow_reader_gets_all_of_it(TlsMode mode, string version, string path)
    {
        await using InteropServer server = await InteropServer.StartAsync(
            mode, kestrel: kestrel => kestrel.Limits.MinResponseDataRate = new KestrelServerLimits().MinResponseDataRate);
        server.AddFile("file", Size);
        using HttpClient client = Server.CreateClient(version, handler => handler.ConnectCallback = ConnectNarrowlyAsync);

        using HttpResponseMessage response = await client.GetAsync(
            new Uri(server.Server.Https, path), HttpCompletionOption.ResponseHeadersRead).InTime();
        using Stream body = await response.Content.ReadAsStreamAsync();
        byte[] part = new byte[128 * 1024];
        for (int received = 0; received < Size; received += part.Length)
        {
            await Task.Delay(20);
            await body.ReadExactlyAsync(part).InTime($"a part at {received}");
            Pattern.AssertAt(received, part);
        }

        Assert.Equal(0, await body.ReadAsync(part).InTime("the end"));
        server.AssertConnections(1, SslProtocols.Tls13);
    }

    [Theory]
    [MemberData(nameof(All))]
    [Trait("waits", "mostly")]
    public async Task A_reader_that_stops_is_cut_off_at_the_servers_limit(TlsMode mode)
    {
        await using InteropServer server = await InteropServer.StartAsync(
            mode, kestrel: kestrel => kestrel.Limits.MinResponseDataRate = new MinDataRate(1e9, TimeSpan.FromSeconds(2)));
        using HttpClient client = Server.CreateClient(configure: handler => handler.ConnectCallback = ConnectNarrowlyAsync);

        using HttpResponseMessage response = await client.GetAsync(
            new Uri(server.Server.Https, "/bytes/100000000"), HttpCompletionOption.ResponseHeadersRead).InTime();
        await server.Server.Events.WaitForAsync(e => e.Id.Name == "ResponseMinimumDataRateNotSatisfied", "Kestrel to lose patience");
        using Stream body = await response.Content.ReadAsStreamAsync();
        await Assert.ThrowsAnyAsync<IOException>(() => Pattern.ReceiveAsync(body, 100_000_000).InTime("the cut"));

        await AssertStoppedAsync(server, 1);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Clients_that_reset_in_the_midst_of_a_response_leave_nothing_behind(TlsMode mode)
    {
        const int Clients = 30;
        await using InteropServer server = await InteropServer.StartAsync(mode);
        server.AddFile("file", Size);

        await Task.WhenAll(Enumerable.Range(0, Clients).Select(async i =>
        {
            using Socket socket = await server.Server.ConnectSocketAsync();
            await using SslStream client = new(new NetworkStream(socket));
            await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)).InTime();
            await Raw.SendRequestAsync(client, i % 2 == 0 ? "/file" : "/bytes/100000000");
            await Raw.ReadHeadAsync(client);
            await Pattern.ReceiveAsync(client, i * 50_000).InTime();
            socket.Close(0);
        })).InTime("the clients");

        await AssertStoppedAsync(server, Clients);
        using HttpClient next = Server.CreateClient();
        Pattern.AssertAt(0, await next.GetByteArrayAsync(new Uri(server.Server.Https, "/file")).InTime());
    }

    /// <summary>Like port scanners and load balancers.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_client_that_is_gone_before_its_handshake_alarms_nobody(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode, listen: endpoint => endpoint.Use(next => async context =>
        {
            Socket socket = context.Features.Get<IConnectionSocketFeature>()!.Socket;
            Assert.True(await Limits.Blocking(() => socket.Poll(Limits.Wait, SelectMode.SelectRead)), "Waited for the reset");
            await next(context);
        }));
        Socket client = await server.ConnectSocketAsync();
        client.Close(0);

        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", "the connection to stop");
        Assert.Single(server.Events.Entries, e => e.Id.Name == "AuthenticationFailed" && e.Exception is IOException);
        Assert.DoesNotContain(server.Events.Entries, e => e.Level > LogLevel.Information);
    }

    /// <summary>
    /// The time limit that ends the connection depends on the state: in a ClientHello the handshake's, after the
    /// handshake the one between requests, and in the head of a request the one for heads, with a response.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Half_a_record_waits_without_a_thread_until_the_servers_limit(TlsMode mode)
    {
        const int Clients = 10;
        await using InteropServer server = await InteropServer.StartAsync(
            mode,
            https => https.HandshakeTimeout = s_patience,
            kestrel => kestrel.Limits.KeepAliveTimeout = kestrel.Limits.RequestHeadersTimeout = s_patience);
        int threads = ThreadPool.ThreadCount;

        Stream[][] clients = await Task.WhenAll(Enumerable.Range(0, Clients).Select(async _ => new[]
        {
            await SendHalfAClientHelloAsync(server.Server),
            await SendHalfARecordAsync(server.Server, ""),
            await SendHalfARecordAsync(server.Server, "GET / HTTP/1.1\r\nHo"),
        })).InTime("the clients");
        await AssertServesAsync(server, threads, 3 * Clients);

        foreach (Stream[] each in clients)
        {
            Assert.Equal(("", ""), (await ReadFirstLineAsync(each[0]), await ReadFirstLineAsync(each[1])));
            Assert.Equal("HTTP/1.1 408 Request Timeout", await ReadFirstLineAsync(each[2]));
        }

        server.AssertConnections((2 * Clients) + 1, SslProtocols.Tls13);
        await AssertStoppedAsync(server, 3 * Clients);
    }

    /// <summary>Tests KERNELTLS_IDLE connections (2000; 50 in the lab).</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Idle_connections_cost_no_thread_and_no_time(TlsMode mode)
    {
        // The first connections must not exceed the server's limit while the last ones connect, which takes minutes on
        // an emulated machine.
        await using InteropServer server = await InteropServer.StartAsync(
            mode, kestrel: kestrel => kestrel.Limits.KeepAliveTimeout = TimeSpan.FromHours(1));
        int threads = ThreadPool.ThreadCount;
        SslStream[] clients = new SslStream[s_idle];
        await Parallel.ForAsync(0, s_idle, new ParallelOptions { MaxDegreeOfParallelism = 16 }, async (i, _) =>
        {
            clients[i] = await server.Server.ConnectAsync();
            await Raw.ExchangeAsync(clients[i]);
        });

        server.AssertConnections(s_idle, SslProtocols.Tls13);
        Assert.Equal(mode == TlsMode.Kernel ? s_idle : 0, server.CurrentConnections);
        await AssertRestsAsync();
        await AssertServesAsync(server, threads, s_idle);

        await Parallel.ForEachAsync(clients, async (client, _) =>
        {
            await Raw.ExchangeAsync(client);
            await client.DisposeAsync();
        });
        await AssertStoppedAsync(server, s_idle);
    }

    /// <summary>
    /// Asserts that the process eventually uses less than a quarter of a processor. That takes a while, because the
    /// runtime still compiles frequently used code.
    /// </summary>
    private static async Task AssertRestsAsync()
    {
        using PeriodicTimer timer = new(TimeSpan.FromSeconds(1));
        TimeSpan last;
        long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds;
        do
        {
            Assert.True(Environment.TickCount64 < deadline, $"Waited {Limits.Wait.TotalSeconds} s for the process to rest");
            last = Environment.CpuUsage.TotalTime;
            await timer.WaitForNextTickAsync();
        }
        while ((Environment.CpuUsage.TotalTime - last).TotalSeconds > 0.25);
    }

    /// <summary>
    /// Asserts that another client gets a response, and that the waiting connections did not make the pool start a
    /// thread each.
    /// </summary>
    private static async Task AssertServesAsync(InteropServer server, int threads, int waiting)
    {
        using HttpClient client = Server.CreateClient();
        Pattern.AssertAt(0, await client.GetByteArrayAsync(new Uri(server.Server.Https, "/bytes/100000")).InTime("another client's answer"));
        Assert.InRange(ThreadPool.ThreadCount - threads, int.MinValue, waiting / 2);
    }

    /// <summary>
    /// Sends the header of a record of 512 bytes that contains a ClientHello (RFC 8446, section 5.1), and a part of its
    /// content.
    /// </summary>
    private static async Task<Stream> SendHalfAClientHelloAsync(Server server)
    {
        NetworkStream client = new(await server.ConnectSocketAsync(), ownsSocket: true);
        byte[] half = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, .. Pattern.Take(100)];
        await client.WriteAsync(half).InTime();
        return client;
    }

    private static async Task<Stream> SendHalfARecordAsync(Server server, string beginning)
    {
        HalvingStream half = new(await server.ConnectSocketAsync());
        SslStream client = new(half);
        await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)).InTime();
        if (beginning.Length > 0)
        {
            await client.WriteAsync(Encoding.ASCII.GetBytes(beginning)).InTime();
        }

        half.Halves = true;
        await client.WriteAsync("st: localhost\r\n\r\n"u8.ToArray()).InTime();
        return client;
    }

    /// <summary>
    /// Reads the first line of the data that arrives before the server closes or resets the connection.
    /// </summary>
    private static async Task<string> ReadFirstLineAsync(Stream client)
    {
        await using (client)
        {
            using MemoryStream received = new();
            try
            {
                await client.CopyToAsync(received).InTime("the server to end the connection");
            }
            catch (IOException)
            {
                // A reset: the server left bytes unread.
            }

            return Encoding.ASCII.GetString(received.ToArray()).Split("\r\n")[0];
        }
    }

    /// <summary>
    /// Asserts that this many connections stop, that none is left in the kernel, and that nothing was logged as a
    /// problem.
    /// </summary>
    private static async Task AssertStoppedAsync(InteropServer server, int count)
    {
        await server.Server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", count, $"{count} connections to stop");
        await server.AssertNoneIsLeftAsync();
        Assert.DoesNotContain(server.Server.Events.Entries, e => e.Level > LogLevel.Information);
    }

    /// <summary>Connects with a receive buffer that holds only a few records.</summary>
    private static async ValueTask<Stream> ConnectNarrowlyAsync(SocketsHttpConnectionContext context, CancellationToken cancellationToken)
    {
        Socket socket = new(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true, ReceiveBufferSize = 32 * 1024 };
        await socket.ConnectAsync(IPAddress.Loopback, context.DnsEndPoint.Port, cancellationToken);
        return new NetworkStream(socket, ownsSocket: true);
    }

    /// <summary>The stream below a client's SslStream: on request it sends only the first half of the data.</summary>
    private sealed class HalvingStream(Socket socket) : NetworkStream(socket, ownsSocket: true)
    {
        public bool Halves { get; set; }

        public override ValueTask WriteAsync(ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default) =>
            base.WriteAsync(Halves ? buffer[..(buffer.Length / 2)] : buffer, cancellationToken);
    }
}
