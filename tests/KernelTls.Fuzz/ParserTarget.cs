using System.Buffers.Binary;
using System.Net.Security;
using System.Security.Authentication;
using System.Text;
using KernelTls.Handshake;

namespace KernelTls.Fuzz;

/// <summary>
/// Tests the parser of ClientHellos that Kestrel's endpoints use. It must not throw for any input, and a second,
/// differently written parser must give the same result.
/// </summary>
internal sealed class ParserTarget : FuzzTarget
{
    public override string Name => "parser";

    /// <summary>Creates a ClientHello with some extensions, and then changes some bytes.</summary>
    public override byte[] Create(Random random)
    {
        List<byte> extensions = [];
        for (int left = random.Next(5); left > 0; left--)
        {
            (int type, byte[] content) = CreateExtension(random);
            extensions.AddRange([(byte)(type >> 8), (byte)type, .. Vector(2, content)]);
        }

        byte[] body =
        [
            3, (byte)random.Next(5), .. new byte[32], .. Vector(1, new byte[random.Next(33)]), .. Vector(2, [0xC0, 0x2B, 0x13, 1]), 1, 0,
            .. random.Next(20) == 0 ? [] : Vector(2, [.. extensions]),
        ];
        byte[] record = [22, 3, 1, .. Vector(2, [1, .. Vector(3, body)])];
        for (int changes = Math.Max(0, random.Next(-3, 4)); changes > 0; changes--)
        {
            record[random.Next(record.Length)] = random.Next(3) == 0 ? (byte)random.Next(256) : (byte)random.Next(4);
        }

        return random.Next(10) == 0 ? record[..random.Next(record.Length)] : record;
    }

    public override Task TryAsync(byte[] input)
    {
        bool isWhole = ClientHelloParser.TryParse(input, out SslClientHelloInfo hello);
        (string Name, SslProtocols Versions)? expected = Read(input);
        if (isWhole != expected.HasValue)
        {
            throw new FuzzException($"The parser says {isWhole}, and the second reading {!isWhole}.");
        }

        if (expected is { } read && (hello.ServerName != read.Name || hello.SslProtocols != read.Versions))
        {
            throw new FuzzException(
                $"The parser read '{hello.ServerName}' {hello.SslProtocols}, and the second reading '{read.Name}' {read.Versions}.");
        }

        return Task.CompletedTask;
    }

    private static (int Type, byte[] Content) CreateExtension(Random random)
    {
        byte[] noise = new byte[random.Next(12)];
        random.NextBytes(noise);
        return random.Next(5) switch
        {
            0 => (0, Vector(2, [0, .. Vector(2, "localhost"u8.ToArray())])),
            1 => (0, Vector(2, [0, .. Vector(2, Encoding.UTF8.GetBytes(random.Next(2) == 0 ? "bücher.example" : "xn--bcher-kva.example"))])),
            2 => (43, Vector(1, [3, 4, 3, 3, 0x0A, 0x0A])),
            3 => (random.Next(2) * 43, noise),
            _ => (random.Next(65536), noise),
        };
    }

    private static byte[] Vector(int width, byte[] content)
    {
        byte[] length = new byte[4];
        BinaryPrimitives.WriteInt32BigEndian(length, content.Length);
        return [.. length[^width..], .. content];
    }

    /// <summary>
    /// Parses by indices what the parser parses by spans. Returns null if the ClientHello is incomplete.
    /// </summary>
    private static (string Name, SslProtocols Versions)? Read(byte[] record)
    {
        try
        {
            int at = 5 + 1;
            int end = at + 3 + Number(record, ref at, 3);
            _ = record[end - 1];
            int version = Number(record, ref at, 2, end);
            at += 32;
            foreach (int width in (int[])[1, 2, 1])
            {
                int length = Number(record, ref at, width, end);
                at += length;
            }

            if (at == end)
            {
                return ("", Protocol(version));
            }

            if (at + 2 > end || at + 2 + Number(record, ref at, 2, end) != end)
            {
                return null;
            }

            return ReadExtensions(record, at, end, Protocol(version));
        }
        catch (IndexOutOfRangeException)
        {
            return null;
        }
    }

    private static (string Name, SslProtocols Versions)? ReadExtensions(byte[] record, int at, int end, SslProtocols versions)
    {
        byte[] name = [];
        while (at < end)
        {
            int type = Number(record, ref at, 2, end);
            int length = Number(record, ref at, 2, end);
            if (at + length > end)
            {
                return null;
            }

            byte[] content = record[at..(at + length)];
            at += length;
            name = type == 0 ? ReadName(content) : name;
            versions = type == 43 ? ReadVersions(content) : versions;
        }

        return (HandshakeOptions.PublishedServerName(name), versions);
    }

    private static byte[] ReadName(byte[] content)
    {
        int length = content.Length - 5;
        byte[] head = [(byte)((length + 3) >> 8), (byte)(length + 3), 0, (byte)(length >> 8), (byte)length];
        bool isName = length is >= 0 and <= 255 && content.AsSpan().StartsWith(head) && !content.AsSpan(5).Contains((byte)0);
        return isName ? content[5..] : [];
    }

    private static SslProtocols ReadVersions(byte[] content)
    {
        SslProtocols versions = SslProtocols.None;
        for (int i = 1; content.Length > 0 && content[0] == content.Length - 1 && i + 1 < content.Length; i += 2)
        {
            versions |= Protocol((content[i] << 8) | content[i + 1]);
        }

        return versions;
    }

    private static int Number(byte[] bytes, ref int at, int width, int end = int.MaxValue)
    {
        int number = 0;
        for (int i = 0; i < width; i++, at++)
        {
            number = (number << 8) | bytes[at < end ? at : bytes.Length];
        }

        return number;
    }

    private static SslProtocols Protocol(int version) =>
        version is >= 0x0300 and <= 0x0304 ? (SslProtocols)(0x30 << (2 * (version - 0x0300))) : SslProtocols.None;
}
