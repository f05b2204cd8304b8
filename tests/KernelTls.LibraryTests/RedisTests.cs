using System.Security.Cryptography.X509Certificates;
using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using StackExchange.Redis;

namespace KernelTls.LibraryTests;

/// <summary>Tests StackExchange.Redis with Redis, which requires a client certificate.</summary>
public sealed class RedisTests(RedisServer server) : LibraryTest("StackExchange.Redis"), IClassFixture<RedisServer>
{
    private const int LargeSize = 8_000_003;

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Many_small_and_a_large_message(bool synchronously)
    {
        await using ConnectionMultiplexer redis = await ConnectAsync(synchronously);
        IDatabase database = redis.GetDatabase();
        byte[] large = Pattern.Take(LargeSize);
        byte[]? echoed;
        if (synchronously)
        {
            echoed = await Limits.Blocking(() =>
            {
                for (int i = 1; i <= 200; i++)
                {
                    Assert.Equal(i, database.StringIncrement("count sync"));
                }

                Assert.True(database.StringSet("large", large));
                return (byte[]?)database.StringGet("large");
            }).InTime("the commands");
        }
        else
        {
            long[] counts = await Task.WhenAll(Enumerable.Range(0, 2000).Select(_ => database.StringIncrementAsync("count"))).InTime("2000 answers");
            Assert.Equal(Enumerable.Range(1, 2000).Select(i => (long)i), counts);
            Assert.True(await database.StringSetAsync("large", large).InTime("a large value"));
            echoed = await database.StringGetAsync("large").InTime("the large value");
        }

        Assert.Equal(LargeSize, echoed!.Length);
        Pattern.AssertAt(0, echoed);
    }

    [Fact]
    public async Task Messages_are_published_and_received()
    {
        await using ConnectionMultiplexer redis = await ConnectAsync();
        ISubscriber subscriber = redis.GetSubscriber();
        ChannelMessageQueue queue = await subscriber.SubscribeAsync(RedisChannel.Literal("news")).InTime("a subscription");
        for (int i = 0; i < 200; i++)
        {
            await subscriber.PublishAsync(RedisChannel.Literal("news"), i).InTime("a publication");
            Assert.Equal(i, (int)(await queue.ReadAsync().InTime("a message")).Message);
        }
    }

    /// <summary>
    /// The library's commands take no token. A command times out instead, and its late response is dropped. The library connects
    /// again if it has received nothing for four times the limit, which is ten seconds after the late response here.
    /// </summary>
    [Fact]
    public async Task A_command_that_took_too_long_leaves_a_connection_that_works()
    {
        await using ConnectionMultiplexer redis = await ConnectAsync(configure: o => (o.AsyncTimeout, o.AllowAdmin) = (4000, true));
        await redis.GetSubscriber().PingAsync().InTime("the library's other connection");
        int handshakes = Handshakes;
        IDatabase database = redis.GetDatabase();

        await Assert.ThrowsAsync<RedisTimeoutException>(() => database.ExecuteAsync("DEBUG", "SLEEP", "6")).InTime("the command's limit");
        await WaitAsync(async () =>
        {
            try
            {
                return await database.StringSetAsync("after", "the sleep");
            }
            catch (RedisTimeoutException)
            {
                return false;
            }
        });

        Assert.Equal("the sleep", await database.StringGetAsync("after").InTime("an answer"));
        Assert.Equal(handshakes, Handshakes);
    }

    [Fact]
    public async Task The_multiplexer_connects_again_when_the_server_has_restarted()
    {
        await using ConnectionMultiplexer redis = await ConnectAsync();
        IDatabase database = redis.GetDatabase();
        Assert.True(await database.StringSetAsync("kept", "by the log").InTime("a value"));
        TaskCompletionSource failed = new(TaskCreationOptions.RunContinuationsAsynchronously);
        redis.ConnectionFailed += (_, e) => failed.TrySetResult();
        await redis.GetSubscriber().PingAsync().InTime("the library's other connection");
        int handshakes = Handshakes;

        await server.StopAsync();
        await failed.Task.InTime("the connection's failure");
        await server.StartAsync();
        await WaitAsync(async () =>
        {
            try
            {
                // Both of the library's connections: a handshake of the other one would be counted in part.
                await redis.GetSubscriber().PingAsync();
                return await database.StringGetAsync("kept") == "by the log";
            }
            catch (Exception e) when (e is RedisConnectionException or RedisTimeoutException)
            {
                return false;
            }
        });

        Assert.InRange(Handshakes, handshakes + 2, int.MaxValue);
    }

    [Fact]
    public async Task Without_a_certificate_the_server_refuses()
    {
        await Assert.ThrowsAsync<RedisConnectionException>(() => ConnectAsync(certificate: null));
        BeginCount();

        await using ConnectionMultiplexer redis = await ConnectAsync();
        Assert.True(redis.IsConnected);
    }

    protected override string ServerErrors => server.Errors;

    protected override Task StartAsync() => server.StartAsync();

    private Task<ConnectionMultiplexer> ConnectAsync(bool synchronously = false, Action<ConfigurationOptions>? configure = null) =>
        ConnectAsync(Certificates.Client, synchronously, configure);

    private async Task<ConnectionMultiplexer> ConnectAsync(
        X509Certificate2? certificate, bool synchronously = false, Action<ConfigurationOptions>? configure = null)
    {
        ConfigurationOptions options = new()
        {
            EndPoints = { { "127.0.0.1", server.Port } },
            Ssl = true,
            SslHost = "localhost",
            ConnectTimeout = (int)Limits.Wait.TotalMilliseconds / 4,
            SyncTimeout = (int)Limits.Wait.TotalMilliseconds,
            AsyncTimeout = (int)Limits.Wait.TotalMilliseconds,
            ReconnectRetryPolicy = new LinearRetry(100),
        };
        options.CertificateSelection += (_, _, _, _, _) => certificate!;
        configure?.Invoke(options);
        return synchronously
            ? await Limits.Blocking(() => ConnectionMultiplexer.Connect(options)).InTime("a connection")
            : await ConnectionMultiplexer.ConnectAsync(options).InTime("a connection");
    }

    private static async Task WaitAsync(Func<Task<bool>> condition)
    {
        using PeriodicTimer timer = new(TimeSpan.FromMilliseconds(50));
        for (long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds; !await condition().InTime();)
        {
            Assert.True(Environment.TickCount64 < deadline, $"Waited {Limits.Wait.TotalSeconds} s for the library to be connected again.");
            await timer.WaitForNextTickAsync();
        }
    }
}
