using System.Buffers.Binary;
using System.Text;

namespace KernelTls.Tests;

/// <summary>What somebody on the way can do to a TLS record, by name: each gives the bytes that arrive in its place.</summary>
internal static class RecordFaults
{
    private const int HeaderSize = 5;
    private const byte ChangeCipherSpec = 20;
    private const byte Alert = 21;
    private const byte Handshake = 22;
    private const byte ApplicationData = 23;

    public static IReadOnlyDictionary<string, Func<byte[], byte[]>> All { get; } = new Dictionary<string, Func<byte[], byte[]>>
    {
        // A changed header.
        ["type 22 for 23"] = record => Flip(record, 0, 0x01),
        ["major version"] = record => Flip(record, 1, 0x01),
        ["minor version"] = record => Flip(record, 2, 0x02),
        ["high length bit"] = record => [.. Flip(record, 3, 0x04), .. Filler(2048)],
        ["low length bit"] = record => [.. Flip(record, 4, 0x01), .. Filler(2048)],
        ["length bit beyond the maximum"] = record => [.. Flip(record, 3, 0x80), .. Filler(65535)],

        // Changed contents.
        ["first byte"] = record => Flip(record, HeaderSize, 0x01),
        ["middle"] = record => Flip(record, record.Length / 2, 0x10),
        ["tag"] = record => Flip(record, record.Length - 1, 0x80),

        // A record of a length that none can have, or that nobody has encrypted, in front.
        ["length 0"] = record => [.. Record(ApplicationData, 0), .. record],
        ["length 1"] = record => [.. Record(ApplicationData, 1), .. record],
        ["length 15"] = record => [.. Record(ApplicationData, 15), .. record],
        ["length 16"] = record => [.. Record(ApplicationData, 16), .. record],
        ["length 17"] = record => [.. Record(ApplicationData, 17), .. record],
        ["length 24"] = record => [.. Record(ApplicationData, 24), .. record],
        ["length 16384"] = record => [.. Record(ApplicationData, 16384), .. record],
        ["length 16401"] = record => [.. Record(ApplicationData, 16401), .. record],
        ["length 16402"] = record => [.. Record(ApplicationData, 16402), .. record],
        ["length 16409"] = record => [.. Record(ApplicationData, 16409), .. record],
        ["length 16640"] = record => [.. Record(ApplicationData, 16640), .. record],
        ["length 16641"] = record => [.. Record(ApplicationData, 16641), .. record],
        ["length 18433"] = record => [.. Record(ApplicationData, 18433), .. record],
        ["length 65535"] = record => [.. Record(ApplicationData, 65535), .. record],
        ["type 0"] = record => [.. Record(0, 32), .. record],
        ["type 24"] = record => [.. Record(24, 32), .. record],
        ["type 255"] = record => [.. Record(255, 100), .. record],

        // Records as they are before there are keys.
        ["alert, warning"] = record => [Alert, 3, 3, 0, 2, 1, 90, .. record],
        ["alert, fatal"] = record => [Alert, 3, 3, 0, 2, 2, 40, .. record],
        ["alert, close_notify"] = record => [Alert, 3, 3, 0, 2, 1, 0, .. record],
        ["HelloRequest"] = record => [Handshake, 3, 3, 0, 4, 0, 0, 0, 0, .. record],
        ["empty handshake record"] = record => [.. Record(Handshake, 0), .. record],
        ["late ChangeCipherSpec"] = record => [ChangeCipherSpec, 3, 3, 0, 1, 1, .. record],
        ["text"] = record => [.. Encoding.ASCII.GetBytes("GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n"), .. record, .. Filler(20000)],
        ["SSL 2"] = record => [0x80, 0x20, 1, 3, 3, .. new byte[29], .. record],
    };

    private static byte[] Flip(byte[] record, int position, byte bits)
    {
        byte[] changed = [.. record];
        changed[position] ^= bits;
        return changed;
    }

    private static byte[] Record(byte type, int length)
    {
        byte[] record = Filler(HeaderSize + length);
        (record[0], record[1], record[2]) = (type, 3, 3);
        BinaryPrimitives.WriteUInt16BigEndian(record.AsSpan(3), (ushort)length);
        return record;
    }

    /// <summary>Bytes without a meaning, always the same.</summary>
    private static byte[] Filler(int length)
    {
        byte[] filler = new byte[length];
        new Random(23).NextBytes(filler);
        return filler;
    }
}
