using System.Buffers.Binary;
using System.Collections.Concurrent;
using System.Net.Security;
using KernelTls.Tests;
using MongoDB.Bson;
using MongoDB.Bson.Serialization;

namespace KernelTls.LibraryTests.Servers;

/// <summary>
/// Implements the part of MongoDB's wire protocol (OP_MSG, and OP_QUERY for the first message) that a driver needs to insert and to
/// find, because the distribution has no such server. Its end of the connections is woven as well, and requires a client certificate.
/// </summary>
internal sealed class MongoStub : TlsStub
{
    /// <summary>The name of a collection whose searches are never answered.</summary>
    public const string Silent = "silent";

    private const int OpReply = 1;
    private const int OpQuery = 2004;
    private const int OpMsg = 2013;

    private readonly ConcurrentDictionary<string, ConcurrentQueue<BsonDocument>> _collections = new();

    protected override SslServerAuthenticationOptions Options => new()
    {
        ServerCertificate = Certificates.Ecdsa,
        ClientCertificateRequired = true,
        CertificateChainPolicy = Certificates.Trust(),
    };

    /// <summary>Receives one message, and answers it.</summary>
    protected override async Task<bool> AnswerAsync(SslStream stream)
    {
        byte[] header = new byte[16];
        if (await stream.ReadAtLeastAsync(header, header.Length, throwOnEndOfStream: false) < header.Length)
        {
            return false;
        }

        byte[] body = new byte[BinaryPrimitives.ReadInt32LittleEndian(header) - header.Length];
        await stream.ReadExactlyAsync(body);
        int operation = BinaryPrimitives.ReadInt32LittleEndian(header.AsSpan(12));
        BsonDocument? reply = Execute(operation == OpQuery ? ReadQuery(body) : ReadMessage(body));
        if (reply is not null)
        {
            await stream.WriteAsync(Frame(reply, operation, header.AsSpan(4, 4)));
        }

        return true;
    }

    private BsonDocument? Execute(BsonDocument command)
    {
        BsonElement first = command.GetElement(0);
        switch (first.Name.ToUpperInvariant())
        {
            case "ISMASTER" or "HELLO":
                return new BsonDocument
                {
                    { "ismaster", true }, { "isWritablePrimary", true }, { "helloOk", true }, { "minWireVersion", 0 }, { "maxWireVersion", 21 },
                    { "maxBsonObjectSize", 16 << 20 }, { "maxMessageSizeBytes", 48_000_000 }, { "maxWriteBatchSize", 100_000 },
                    { "localTime", DateTime.UtcNow }, { "connectionId", 1 }, { "readOnly", false }, { "ok", 1 },
                };

            case "INSERT":
                BsonArray documents = command["documents"].AsBsonArray;
                foreach (BsonValue document in documents)
                {
                    Collection(first).Enqueue(document.AsBsonDocument);
                }

                return new BsonDocument { { "n", documents.Count }, { "ok", 1 } };

            case "FIND" when first.Value == Silent:
                return null;

            case "FIND":
                BsonDocument filter = command["filter"].AsBsonDocument;
                return new BsonDocument
                {
                    {
                        "cursor",
                        new BsonDocument
                        {
                            { "id", 0L }, { "ns", $"test.{first.Value}" },
                            { "firstBatch", new BsonArray(Collection(first).Where(d => filter.All(e => d[e.Name] == e.Value))) },
                        }
                    },
                    { "ok", 1 },
                };

            default:
                return new BsonDocument("ok", 1);
        }
    }

    private ConcurrentQueue<BsonDocument> Collection(BsonElement command) => _collections.GetOrAdd(command.Value.AsString, _ => new());

    /// <summary>Parses flags, the name of a collection, two numbers, and the command.</summary>
    private static BsonDocument ReadQuery(byte[] body) => Document(body, 4 + Array.IndexOf(body, (byte)0, 4) - 4 + 1 + 8);

    /// <summary>Parses flags and sections: the command, and sequences of documents that belong to it.</summary>
    private static BsonDocument ReadMessage(byte[] body)
    {
        BsonDocument command = [];
        for (int position = 4; position < body.Length;)
        {
            bool isCommand = body[position++] == 0;
            int size = BinaryPrimitives.ReadInt32LittleEndian(body.AsSpan(position));
            if (isCommand)
            {
                command = new BsonDocument(Document(body, position).Concat(command));
            }
            else
            {
                int nameEnd = Array.IndexOf(body, (byte)0, position + 4);
                BsonArray documents = [];
                for (int next = nameEnd + 1; next < position + size; next += BinaryPrimitives.ReadInt32LittleEndian(body.AsSpan(next)))
                {
                    documents.Add(Document(body, next));
                }

                command.Add(System.Text.Encoding.UTF8.GetString(body, position + 4, nameEnd - position - 4), documents);
            }

            position += size;
        }

        return command;
    }

    private static BsonDocument Document(byte[] bytes, int position) => BsonSerializer.Deserialize<BsonDocument>(
        bytes.AsSpan(position, BinaryPrimitives.ReadInt32LittleEndian(bytes.AsSpan(position))).ToArray());

    private static byte[] Frame(BsonDocument reply, int operation, ReadOnlySpan<byte> requestId)
    {
        byte[] document = reply.ToBson();

        // OP_REPLY: flags, cursor, start, count. OP_MSG: flags, and the kind of the only section.
        int prefix = operation == OpQuery ? 20 : 5;
        byte[] frame = new byte[16 + prefix + document.Length];
        BinaryPrimitives.WriteInt32LittleEndian(frame, frame.Length);
        requestId.CopyTo(frame.AsSpan(8));
        BinaryPrimitives.WriteInt32LittleEndian(frame.AsSpan(12), operation == OpQuery ? OpReply : OpMsg);
        if (operation == OpQuery)
        {
            BinaryPrimitives.WriteInt32LittleEndian(frame.AsSpan(16 + 16), 1);
        }

        document.CopyTo(frame, 16 + prefix);
        return frame;
    }
}
