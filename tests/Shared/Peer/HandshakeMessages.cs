using System.Buffers.Binary;
using System.Text;

namespace KernelTls.Tests;

/// <summary>
/// Creates handshake messages (RFC 8446, section 4; RFC 5246, section 7.4), with P-256, ECDSA and AES-128-GCM.
/// </summary>
internal static class HandshakeMessages
{
    public const byte ClientHello = 1;
    public const byte ServerHello = 2;
    public const byte NewSessionTicket = 4;
    public const byte EncryptedExtensions = 8;
    public const byte Certificate = 11;
    public const byte ServerKeyExchange = 12;
    public const byte CertificateRequest = 13;
    public const byte ServerHelloDone = 14;
    public const byte CertificateVerify = 15;
    public const byte ClientKeyExchange = 16;
    public const byte Finished = 20;
    public const byte KeyUpdate = 24;
    public const byte MessageHash = 254;

    public const int HeaderSize = 4;
    public const int PointSize = 65;
    private const int RandomSize = 32;
    private const int KeyShare = 51;

    /// <summary>The random that makes a ServerHello a HelloRetryRequest (RFC 8446, section 4.1.3).</summary>
    private static readonly byte[] s_retry = Convert.FromHexString("CF21AD74E59A6111BE1D8C021E65B891C2A211167ABB8C5E079E09E2C8A8339C");

    public static byte[] EcdsaSha256 => [4, 3];

    public static byte[] Message(byte type, params ReadOnlySpan<byte> content) => [type, .. Vector(content, 3)];

    public static byte[] NewClientHello(bool tls13, byte[] random, byte[] point, string? protocol)
    {
        byte[] name = Encoding.ASCII.GetBytes("localhost");
        List<byte> extensions =
        [
            .. Extension(0, Vector([0, .. Vector(name, 2)], 2)),
            .. Extension(10, [0, 2, 0, 23]),
            .. Extension(11, [1, 0]),
            .. Extension(13, [0, 2, .. EcdsaSha256]),
            .. Extension(0xFF01, [0]),
        ];
        if (tls13)
        {
            extensions.AddRange([.. Extension(43, [2, 3, 4]), .. Extension(KeyShare, Vector([0, 23, .. Vector(point, 2)], 2))]);
        }

        AddProtocol(extensions, protocol);
        byte[] suite = tls13 ? [0x13, 0x01] : [0xC0, 0x2B];
        byte[] sessionId = tls13 ? [32, .. random] : [0];
        return Message(ClientHello, [3, 3, .. random, .. sessionId, .. Vector(suite, 2), 1, 0, .. Vector([.. extensions], 2)]);
    }

    /// <summary>Creates a TLS 1.3 ServerHello.</summary>
    /// <param name="random">The random.</param>
    /// <param name="sessionId">The session id of the ClientHello.</param>
    /// <param name="point">This end's point in TLS 1.3, or null for a HelloRetryRequest for P-256.</param>
    public static byte[] NewServerHello13(byte[] random, byte[] sessionId, byte[]? point) => Message(
        ServerHello,
        [
            3, 3, .. point is null ? s_retry : random, .. Vector(sessionId, 1), 0x13, 0x01, 0,
            .. Vector([.. Extension(43, [3, 4]), .. Extension(KeyShare, point is null ? [0, 23] : [0, 23, .. Vector(point, 2)])], 2),
        ]);

    public static byte[] NewServerHello12(byte[] random, string? protocol)
    {
        List<byte> extensions = [.. Extension(0xFF01, [0]), .. Extension(11, [1, 0])];
        AddProtocol(extensions, protocol);
        return Message(ServerHello, [3, 3, .. random, 0, 0xC0, 0x2B, 0, .. Vector([.. extensions], 2)]);
    }

    public static byte[] NewEncryptedExtensions(string? protocol)
    {
        List<byte> extensions = [];
        AddProtocol(extensions, protocol);
        return Message(EncryptedExtensions, Vector([.. extensions], 2));
    }

    public static byte[] RandomOf(ReadOnlySpan<byte> hello) => hello.Slice(HeaderSize + 2, RandomSize).ToArray();

    public static byte[] SessionIdOf(ReadOnlySpan<byte> hello) =>
        hello.Slice(HeaderSize + 2 + RandomSize + 1, hello[HeaderSize + 2 + RandomSize]).ToArray();

    /// <summary>Returns the P-256 point of a hello's key share, or <see langword="null"/> if it has none.</summary>
    public static byte[]? PointOf(ReadOnlySpan<byte> hello)
    {
        bool client = hello[0] == ClientHello;
        ReadOnlySpan<byte> rest = hello[(HeaderSize + 2 + RandomSize)..];
        Take(ref rest, 1);
        if (client)
        {
            Take(ref rest, 2);
            Take(ref rest, 1);
        }
        else
        {
            rest = rest[3..];
        }

        for (ReadOnlySpan<byte> extensions = Take(ref rest, 2); !extensions.IsEmpty;)
        {
            int type = BinaryPrimitives.ReadUInt16BigEndian(extensions);
            extensions = extensions[2..];
            ReadOnlySpan<byte> content = Take(ref extensions, 2);
            if (type != KeyShare)
            {
                continue;
            }

            for (ReadOnlySpan<byte> shares = client ? Take(ref content, 2) : content; shares.Length > 4;)
            {
                int group = BinaryPrimitives.ReadUInt16BigEndian(shares);
                shares = shares[2..];
                ReadOnlySpan<byte> share = Take(ref shares, 2);
                if (group == 23)
                {
                    return share.ToArray();
                }
            }
        }

        return null;
    }

    public static byte[] Vector(ReadOnlySpan<byte> content, int lengthSize)
    {
        byte[] length = new byte[4];
        BinaryPrimitives.WriteInt32BigEndian(length, content.Length);
        return [.. length[^lengthSize..], .. content];
    }

    private static void AddProtocol(List<byte> extensions, string? protocol)
    {
        if (protocol is not null)
        {
            extensions.AddRange(Extension(16, Vector(Vector(Encoding.ASCII.GetBytes(protocol), 1), 2)));
        }
    }

    private static byte[] Extension(int type, byte[] content) => [(byte)(type >> 8), (byte)type, .. Vector(content, 2)];

    private static ReadOnlySpan<byte> Take(ref ReadOnlySpan<byte> rest, int lengthSize)
    {
        int length = lengthSize == 1 ? rest[0] : BinaryPrimitives.ReadUInt16BigEndian(rest);
        ReadOnlySpan<byte> taken = rest.Slice(lengthSize, length);
        rest = rest[(lengthSize + length)..];
        return taken;
    }
}
