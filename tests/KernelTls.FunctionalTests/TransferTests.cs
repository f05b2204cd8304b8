using System.Globalization;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

[Trait("loop", "outer")]
public class TransferTests : KernelTest
{
    private static readonly long s_bytes =
        long.Parse(Environment.GetEnvironmentVariable("KERNELTLS_TRANSFER_MIB") ?? "1024", CultureInfo.InvariantCulture) << 20;

    /// <summary>
    /// The time limit that detects a hang. Emulated machines move about 10 MB per second, busy ones less.
    /// </summary>
    private static readonly TimeSpan s_limit = Limits.Wait + TimeSpan.FromSeconds(s_bytes / 2_000_000.0);

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task A_large_transfer_from_client_to_server_is_intact(SslProtocols version)
    {
        await using TlsPair pair = await ConnectAsync(version);
        await MoveAsync(pair, fromClient: true, fromServer: false);
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task A_large_transfer_from_server_to_client_is_intact(SslProtocols version)
    {
        await using TlsPair pair = await ConnectAsync(version);
        await MoveAsync(pair, fromClient: false, fromServer: true);
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task Large_transfers_both_ways_at_once_are_intact(SslProtocols version)
    {
        await using TlsPair pair = await ConnectAsync(version);
        await MoveAsync(pair, fromClient: true, fromServer: true);
    }

    private static async Task MoveAsync(TlsPair pair, bool fromClient, bool fromServer)
    {
        // The full size only once: TLS 1.3 and 1.2 differ in their record format, not in how data moves.
        long bytes = pair.Client.SslProtocol == SslProtocols.Tls13 ? s_bytes : s_bytes / 8;
        List<Task> tasks = [];
        if (fromClient)
        {
            tasks.Add(SendAndCloseAsync(pair.Client));
            tasks.Add(ReceiveToTheEndAsync(pair.Server));
        }

        if (fromServer)
        {
            tasks.Add(SendAndCloseAsync(pair.Server));
            tasks.Add(ReceiveToTheEndAsync(pair.Client));
        }

        try
        {
            await Task.WhenAll(tasks).WaitAsync(s_limit);
        }
        catch (TimeoutException)
        {
            Assert.Fail($"{bytes} bytes were not moved within {s_limit}.");
        }

        async Task SendAndCloseAsync(System.Net.Security.SslStream stream)
        {
            await Pattern.SendAsync(stream, bytes);
            await stream.ShutdownAsync();
        }

        async Task ReceiveToTheEndAsync(System.Net.Security.SslStream stream)
        {
            await Pattern.ReceiveAsync(stream, bytes);
            Assert.Equal(0, await stream.ReadAsync(new byte[1]));
        }
    }

    public static TheoryData<int, SslProtocols> Buffers
    {
        get
        {
            TheoryData<int, SslProtocols> data = [];
            foreach (int size in new[] { 1, 100, 16_383, 16_384, 16_385, 65_536 })
            {
                data.Add(size, SslProtocols.Tls12);
                data.Add(size, SslProtocols.Tls13);
            }

            return data;
        }
    }

    /// <summary>
    /// SSL_read, called to process the tickets, may fetch data along with them. That data must be returned before the
    /// socket is read again.
    /// </summary>
    [Theory]
    [Trait("Pitfall", "5")]
    [Trait("Pitfall", "6")]
    [MemberData(nameof(Buffers))]
    public async Task Tickets_with_data_at_their_heels_lose_nothing(int buffer, SslProtocols version)
    {
        int size = buffer == 1 ? 40_000 : 400_000;
        foreach (bool cancellable in new[] { false, true })
        {
            using CancellationTokenSource source = new();
            await using TlsPair pair = await ConnectAsync(version);
            await pair.Server.WriteAsync(Pattern.At(0, 16_500)).InTime();
            Task sending = Task.Run(async () =>
            {
                for (int sent = 16_500; sent < size;)
                {
                    int next = Math.Min(17_000, size - sent);
                    await pair.Server.WriteAsync(Pattern.At(sent, next));
                    sent += next;
                }
            });

            byte[] bytes = new byte[buffer];
            for (int received = 0; received < size;)
            {
                ValueTask<int> reading = pair.Client.ReadAsync(bytes, cancellable ? source.Token : default);
                int read = reading.IsCompleted ? await reading : await reading.InTime($"byte {received} of {size}");
                Assert.NotEqual(0, read);
                Pattern.AssertAt(received, bytes.AsSpan(0, read));
                received += read;
            }

            await sending.InTime();
        }
    }

    /// <summary>The same with blocking reads.</summary>
    [Theory]
    [Trait("Pitfall", "5")]
    [Trait("Pitfall", "6")]
    [MemberData(nameof(Buffers))]
    public async Task Tickets_with_data_at_their_heels_lose_nothing_in_blocking_reads(int buffer, SslProtocols version)
    {
        int size = buffer == 1 ? 20_000 : 400_000;
        await using TlsPair pair = await ConnectAsync(version);
        Task sending = Pattern.SendAsync(pair.Server, size, chunk: 16_999);

        await Limits.Blocking(() =>
        {
            byte[] bytes = new byte[buffer];
            for (int received = 0; received < size;)
            {
                int read = pair.Client.Read(bytes);
                Assert.NotEqual(0, read);
                Pattern.AssertAt(received, bytes.AsSpan(0, read));
                received += read;
            }
        }).InTime();

        await sending.InTime();
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task One_receive_takes_many_records(SslProtocols version)
    {
        await using TlsPair pair = await ConnectAsync(version);
        const int Records = 200;
        const int Size = 1_000;
        for (int i = 0; i < Records; i++)
        {
            await pair.Client.WriteAsync(Pattern.At(i * Size, Size)).InTime();
        }

        int reads = await Pattern.ReceiveAsync(pair.Server, Records * Size).InTime();

        if (ReceivingEnds(version) == 2)
        {
            Assert.True(reads < Records / 4, $"{reads} receives for {Records} records");
        }
        else
        {
            Assert.InRange(reads, 1, Records);
        }
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task Two_hundred_connections_at_once_echo(SslProtocols version)
    {
        TlsStatistics before = TlsStatistics.Read();
        const int Connections = 200;
        const int Size = 20_000;
        SemaphoreSlim handshakes = new(16);
        await Task.WhenAll(Enumerable.Range(0, Connections).Select(async number =>
        {
            await handshakes.WaitAsync();
            TlsPair pair = await ConnectAsync(version);
            handshakes.Release();
            await using (pair)
            {
                Task echoing = Task.Run(async () =>
                {
                    byte[] buffer = new byte[4_096];
                    for (int read; (read = await pair.Server.ReadAsync(buffer)) > 0;)
                    {
                        await pair.Server.WriteAsync(buffer.AsMemory(0, read));
                    }

                    await pair.Server.ShutdownAsync();
                });
                Task sending = Task.Run(async () =>
                {
                    await pair.Client.WriteAsync(Pattern.At(number, Size));
                    await pair.Client.ShutdownAsync();
                });
                byte[] answer = new byte[Size];
                await pair.Client.ReadExactlyAsync(answer);
                Pattern.AssertAt(number, answer);
                Assert.Equal(0, await pair.Client.ReadAsync(new byte[1]));
                await Task.WhenAll(echoing, sending);
            }
        })).InTime("200 connections to echo");

        Assert.Equal(2 * Connections, TlsStatistics.Read().SendSoftware - before.SendSoftware);
    }
}
