using System.Security.Authentication;
using KernelTls.Bench.Servers;
using StackExchange.Redis;

namespace KernelTls.Bench.Scenarios;

/// <summary>Gets a value of 64 KiB from Redis with StackExchange.Redis, one request after the other.</summary>
internal sealed class RedisGet(string mode) : LibraryScenario(mode, typeof(ConnectionMultiplexer).Assembly)
{
    private const string Key = "value";
    private const int Size = 64 * 1024;
    private const int Timeout = 60_000;

    private ConnectionMultiplexer? _redis;
    private IDatabase? _database;

    /// <summary>Gets a number with which a round has several collections of the values. One more or less then changes little.</summary>
    public override int OperationsPerRound => 240;

    /// <summary>Gets two: the library has a second connection for subscriptions.</summary>
    protected override int Connections => 2;

    public override async Task RunAsync(int operations)
    {
        for (int i = 0; i < operations; i++)
        {
            byte[]? value = await _database!.StringGetAsync(Key);
            if (value?.Length != Size)
            {
                throw new BenchFailedException($"{value?.Length} bytes of a value of {Size}");
            }
        }
    }

    public override async ValueTask DisposeAsync()
    {
        await (_redis?.DisposeAsync() ?? default);
        await base.DisposeAsync();
    }

    protected override Task<ServerProcess> StartServerAsync() => LibraryServers.StartRedisAsync(Files);

    protected override async Task ConnectAsync(int port)
    {
        ConfigurationOptions options = new()
        {
            EndPoints = { { "127.0.0.1", port } },
            Ssl = true,
            SslHost = BenchCertificates.Host,
            SslProtocols = SslProtocols.Tls13,
            CheckCertificateRevocation = false,
            ConnectTimeout = Timeout,
            AsyncTimeout = Timeout,
        };
        options.TrustIssuer(BenchCertificates.AuthorityPathIn(Files.FullName));
        _redis = await ConnectionMultiplexer.ConnectAsync(options);
        _database = _redis.GetDatabase();
        _ = await _redis.GetSubscriber().PingAsync();
        _ = await _database.StringSetAsync(Key, new byte[Size]);
    }
}
