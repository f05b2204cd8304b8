using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using MongoDB.Bson;
using MongoDB.Driver;

namespace KernelTls.LibraryTests;

/// <summary>Tests MongoDB.Driver with a stub of its server, which is woven as well and requires a client certificate.</summary>
[Trait("host", "yes")]
public sealed class MongoTests() : LibraryTest("MongoDB.Driver", "KernelTls.LibraryTests")
{
    private const int LargeSize = 5_000_001;

    private readonly MongoStub _server = new();

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Many_small_and_a_large_message(bool synchronously)
    {
        using MongoClient client = Client();
        IMongoCollection<BsonDocument> collection = client.GetDatabase("test").GetCollection<BsonDocument>("many");
        for (int i = 0; i <= 100; i++)
        {
            BsonDocument document = new() { { "_id", i }, { "data", i == 100 ? Pattern.Take(LargeSize) : BitConverter.GetBytes(i) } };
            if (synchronously)
            {
                await Limits.Blocking(() => collection.InsertOne(document)).InTime($"document {i}");
            }
            else
            {
                await collection.InsertOneAsync(document).InTime($"document {i}");
            }
        }

        BsonDocument large = await FindAsync(collection, 100, synchronously);
        byte[] data = large["data"].AsByteArray;
        Assert.Equal(LargeSize, data.Length);
        Pattern.AssertAt(0, data);
        for (int i = 0; i < 100; i++)
        {
            Assert.Equal(BitConverter.GetBytes(i), (await FindAsync(collection, i, synchronously))["data"].AsByteArray);
        }
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task A_cancelled_command_leaves_a_client_that_works(bool synchronously)
    {
        using MongoClient client = Client();
        IMongoDatabase database = client.GetDatabase("test");
        await database.GetCollection<BsonDocument>("after").InsertOneAsync(new BsonDocument("_id", 1)).InTime("a document");
        IMongoCollection<BsonDocument> silent = database.GetCollection<BsonDocument>(MongoStub.Silent);
        using CancellationTokenSource soon = new(TimeSpan.FromMilliseconds(200));

        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => synchronously
            ? Limits.Blocking(() => silent.Find(FilterDefinition<BsonDocument>.Empty).ToList(soon.Token))
            : silent.Find(FilterDefinition<BsonDocument>.Empty).ToListAsync(soon.Token)).InTime("the cancelled command");

        Assert.Equal(1, (await FindAsync(database.GetCollection<BsonDocument>("after"), 1, synchronously))["_id"].AsInt32);
    }

    [Fact]
    public async Task A_pooled_connection_is_used_again_and_replaced_when_the_server_has_restarted()
    {
        using MongoClient client = Client();
        IMongoCollection<BsonDocument> collection = client.GetDatabase("test").GetCollection<BsonDocument>("restarted");
        await collection.InsertOneAsync(new BsonDocument("_id", 1)).InTime("a document");
        for (int i = 0; i < 20; i++)
        {
            await FindAsync(collection, 1, synchronously: false);
        }

        // One connection carries the commands, and others monitor the server. Each has two ends.
        Assert.InRange(Handshakes, 4, 6);
        int before = Handshakes;

        await _server.StopAsync();
        _server.Start();
        for (int attempt = 0; ; attempt++)
        {
            try
            {
                await FindAsync(collection, 1, synchronously: false);
                break;
            }
            catch (MongoException) when (attempt < 5)
            {
            }
        }

        Assert.InRange(Handshakes, before + 2, int.MaxValue);
    }

    protected override Task StartAsync()
    {
        _server.Start();
        return Task.CompletedTask;
    }

    protected override async Task StopAsync() => await _server.DisposeAsync();

    private MongoClient Client() => new(new MongoClientSettings
    {
        Server = new MongoServerAddress("127.0.0.1", _server.Port),
        DirectConnection = true,
        UseTls = true,
        SslSettings = new SslSettings { ClientCertificates = [Certificates.Client], CheckCertificateRevocation = false },
        ServerSelectionTimeout = Limits.Wait,
        ConnectTimeout = Limits.Wait,
    });

    private static Task<BsonDocument> FindAsync(IMongoCollection<BsonDocument> collection, int id, bool synchronously)
    {
        IFindFluent<BsonDocument, BsonDocument> found = collection.Find(Builders<BsonDocument>.Filter.Eq("_id", id));
        return synchronously
            ? Limits.Blocking(() => found.Single()).InTime($"document {id}")
            : found.SingleAsync().InTime($"document {id}");
    }
}
