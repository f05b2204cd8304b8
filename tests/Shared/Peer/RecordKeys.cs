using System.Buffers.Binary;
using System.Security.Cryptography;

namespace KernelTls.Tests;

/// <summary>
/// Protects the records of one direction with AES-128-GCM (RFC 8446, section 5.2; RFC 5288, section 3). It keeps the
/// sequence number, so that records are authentic in the order in which they are sealed.
/// </summary>
internal sealed class RecordKeys : IDisposable
{
    public const int KeySize = 16;
    public const int SaltSize = 4;
    private const int HeaderSize = 5;
    private const int TagSize = 16;
    private const int NonceSize = 12;
    private const int ExplicitNonceSize = 8;

    private readonly byte[] _secret;
    private readonly byte[] _iv;
    private readonly AesGcm _cipher;
    private long _sequence;

    private RecordKeys(byte[] secret, byte[] key, byte[] iv)
    {
        (_secret, _iv) = (secret, iv);
        _cipher = new AesGcm(key, TagSize);
    }

    private bool IsTls13 => _iv.Length == NonceSize;

    /// <summary>Creates TLS 1.3 keys from a traffic secret.</summary>
    public static RecordKeys Tls13(byte[] secret) =>
        new(secret, KeySchedule.ExpandLabel(secret, "key", [], KeySize), KeySchedule.ExpandLabel(secret, "iv", [], NonceSize));

    /// <summary>Creates TLS 1.2 keys from parts of the key block.</summary>
    public static RecordKeys Tls12(byte[] key, byte[] salt) => new([], key, salt);

    /// <summary>Returns the keys after a KeyUpdate (RFC 8446, section 7.2).</summary>
    public RecordKeys Next() => Tls13(KeySchedule.ExpandLabel(_secret, "traffic upd", [], _secret.Length));

    /// <summary>Returns a complete record.</summary>
    /// <param name="type">The content type; in TLS 1.3 the inner one.</param>
    /// <param name="content">The content, of any length, even one that no record may have.</param>
    /// <param name="padding">The number of zeros after the type, in TLS 1.3.</param>
    /// <param name="outerType">The type in the header, which is authenticated. The default is the correct one.</param>
    public byte[] Seal(byte type, ReadOnlySpan<byte> content, int padding = 0, byte? outerType = null)
    {
        byte[] plain = IsTls13 ? [.. content, type, .. new byte[padding]] : content.ToArray();
        return SealInner(outerType ?? (IsTls13 ? RecordType.ApplicationData : type), plain);
    }

    /// <summary>Returns a TLS 1.3 record whose plaintext is all zeros and therefore has no type.</summary>
    public byte[] SealZeros(int length) => SealInner(RecordType.ApplicationData, new byte[length]);

    /// <summary>Returns the type and the content. Throws if the record is not authentic.</summary>
    public (byte Type, byte[] Content) Open(ReadOnlySpan<byte> record)
    {
        int nonceSize = IsTls13 ? 0 : ExplicitNonceSize;
        ReadOnlySpan<byte> body = record[(HeaderSize + nonceSize)..];
        byte[] plain = new byte[body.Length - TagSize];
        byte[] nonce = Nonce(record.Slice(HeaderSize, nonceSize));
        _cipher.Decrypt(nonce, body[..^TagSize], body[^TagSize..], plain, AssociatedData(record[0], record[..HeaderSize], plain.Length));
        _sequence++;
        if (!IsTls13)
        {
            return (record[0], plain);
        }

        int end = plain.AsSpan().LastIndexOfAnyExcept((byte)0);
        return (plain[end], plain[..end]);
    }

    public void Dispose() => _cipher.Dispose();

    private byte[] SealInner(byte outerType, byte[] plain)
    {
        int nonceSize = IsTls13 ? 0 : ExplicitNonceSize;
        byte[] record = new byte[HeaderSize + nonceSize + plain.Length + TagSize];
        (record[0], record[1], record[2]) = (outerType, 3, 3);
        BinaryPrimitives.WriteUInt16BigEndian(record.AsSpan(3), (ushort)(record.Length - HeaderSize));
        Span<byte> explicitNonce = record.AsSpan(HeaderSize, nonceSize);
        if (nonceSize > 0)
        {
            BinaryPrimitives.WriteInt64BigEndian(explicitNonce, _sequence);
        }

        Span<byte> body = record.AsSpan(HeaderSize + nonceSize);
        byte[] associated = AssociatedData(outerType, record.AsSpan(0, HeaderSize), plain.Length);
        _cipher.Encrypt(Nonce(explicitNonce), plain, body[..plain.Length], body[plain.Length..], associated);
        _sequence++;
        return record;
    }

    private byte[] Nonce(ReadOnlySpan<byte> explicitNonce)
    {
        if (!IsTls13)
        {
            return [.. _iv, .. explicitNonce];
        }

        byte[] nonce = [.. _iv];
        Span<byte> last = nonce.AsSpan(NonceSize - sizeof(long));
        BinaryPrimitives.WriteInt64BigEndian(last, BinaryPrimitives.ReadInt64BigEndian(last) ^ _sequence);
        return nonce;
    }

    private byte[] AssociatedData(byte type, ReadOnlySpan<byte> header, int length)
    {
        if (IsTls13)
        {
            return header.ToArray();
        }

        byte[] data = new byte[sizeof(long) + HeaderSize];
        BinaryPrimitives.WriteInt64BigEndian(data, _sequence);
        (data[8], data[9], data[10]) = (type, 3, 3);
        BinaryPrimitives.WriteUInt16BigEndian(data.AsSpan(11), (ushort)length);
        return data;
    }
}
