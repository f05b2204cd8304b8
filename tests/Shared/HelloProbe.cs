using System.Buffers.Binary;
using System.Net.Security;
using System.Net.Sockets;

namespace KernelTls.Tests;

/// <summary>
/// Handles ClientHellos directly: formats an offer as comparable text, and returns a server's answer to an offer.
/// </summary>
internal static class HelloProbe
{
    private const int Padding = 21;
    private const int SessionTicket = 35;
    private const int PreSharedKey = 41;
    private const int KeyShare = 51;

    /// <summary>
    /// Returns everything in a ClientHello record that is not random: versions, suites, and extensions in order. Of
    /// keys, tickets and padding it returns the length.
    /// </summary>
    public static string Describe(ReadOnlySpan<byte> record)
    {
        // Record header, handshake header, legacy version, random.
        List<string> lines = [$"record {Hex(record[1..3])}, hello {Hex(record[9..11])}"];
        ReadOnlySpan<byte> rest = record[(5 + 4 + 2 + 32)..];
        lines.Add($"session id of {Take(ref rest, 1).Length}");
        lines.Add($"suites {Hex(Take(ref rest, 2))}");
        lines.Add($"compression {Hex(Take(ref rest, 1))}");
        ReadOnlySpan<byte> extensions = Take(ref rest, 2);
        while (!extensions.IsEmpty)
        {
            int type = BinaryPrimitives.ReadUInt16BigEndian(extensions);
            extensions = extensions[2..];
            ReadOnlySpan<byte> content = Take(ref extensions, 2);
            lines.Add(type is KeyShare or Padding or SessionTicket or PreSharedKey ? $"extension {type} of {content.Length}" : $"extension {type} {Hex(content)}");
        }

        return string.Join('\n', lines);
    }

    /// <summary>Reads the first record of a connection.</summary>
    public static async Task<byte[]> ReadRecordAsync(Socket socket)
    {
        using NetworkStream stream = new(socket);
        byte[] header = new byte[5];
        await stream.ReadExactlyAsync(header).InTime("the header of a record");
        byte[] body = new byte[BinaryPrimitives.ReadUInt16BigEndian(header.AsSpan(3))];
        await stream.ReadExactlyAsync(body).InTime("the rest of a record");
        return [.. header, .. body];
    }

    /// <summary>
    /// Offers only these suites and returns the one that the server chooses, or <see langword="null"/> if it refuses.
    /// TLS 1.3 suites are offered without a key share, so that the server chooses any of them by a HelloRetryRequest.
    /// </summary>
    public static async Task<TlsCipherSuite?> OfferAsync(Socket socket, TlsCipherSuite[] suites)
    {
        await socket.SendAsync(Build(suites, suites.All(IsTls13))).InTime("the ClientHello to be sent");
        byte[] record;
        try
        {
            record = await ReadRecordAsync(socket);
        }
        catch (Exception e) when (e is EndOfStreamException or IOException)
        {
            // The stock stream refuses without an alert.
            return null;
        }

        const byte handshake = 22;
        if (record[0] != handshake)
        {
            return null;
        }

        int sessionId = record[5 + 4 + 2 + 32];
        return (TlsCipherSuite)BinaryPrimitives.ReadUInt16BigEndian(record.AsSpan(5 + 4 + 2 + 32 + 1 + sessionId));
    }

    /// <summary>
    /// Returns what a server accepts of the suites that have a number, by their names: which it chooses one after the other
    /// until it refuses the rest, what it answers if each of these is offered alone, and which it prefers if they are
    /// offered the other way round.
    /// </summary>
    /// <param name="offer">
    /// The function that makes an offer to the server and returns its choice, or <see langword="null"/> if it refuses.
    /// </param>
    public static async Task<string[]> AcceptedAsync(Func<TlsCipherSuite[], Task<TlsCipherSuite?>> offer)
    {
        List<TlsCipherSuite> known = [];
        // An offer of TLS 1.3 alone has other extensions.
        foreach (IGrouping<bool, TlsCipherSuite> version in Enum.GetValues<TlsCipherSuite>().GroupBy(IsTls13))
        {
            known.AddRange(await ChosenAsync([.. version], offer));
        }

        List<string> said = [.. known.Select(s => $"{s}")];
        foreach (TlsCipherSuite suite in known)
        {
            said.Add($"alone {await offer([suite])}");
        }

        known.Reverse();
        List<TlsCipherSuite> again = await ChosenAsync([.. known], offer);
        Assert.Equal(known.Order(), again.Order());
        said.AddRange(again.Select(s => $"then {s}"));
        return [.. said];
    }

    /// <summary>
    /// Offers the suites, and again without the one that was chosen, until the server refuses. Returns the chosen ones in
    /// this order.
    /// </summary>
    private static async Task<List<TlsCipherSuite>> ChosenAsync(TlsCipherSuite[] offered, Func<TlsCipherSuite[], Task<TlsCipherSuite?>> offer)
    {
        List<TlsCipherSuite> chosen = [];
        while (offered.Length > 0 && await offer(offered) is { } suite)
        {
            Assert.Contains(suite, offered);
            chosen.Add(suite);
            offered = [.. offered.Where(s => s != suite)];
        }

        return chosen;
    }

    private static bool IsTls13(TlsCipherSuite suite) => (int)suite >> 8 == 0x13;

    private static byte[] Build(TlsCipherSuite[] suites, bool tls13)
    {
        List<byte> extensions =
        [
            .. Extension(10, Vector([0x00, 0x1D, 0x00, 0x17, 0x00, 0x18, 0x01, 0x00, 0x01, 0x01], 2)),
            .. Extension(11, [1, 0]),
            .. Extension(13, Vector(
                [4, 3, 5, 3, 6, 3, 8, 4, 8, 5, 8, 6, 4, 1, 5, 1, 6, 1, 2, 1, 2, 3], 2)),
            .. Extension(23, []),
            .. Extension(0xFF01, [0]),
        ];
        if (tls13)
        {
            extensions.AddRange([.. Extension(43, [2, 3, 4]), .. Extension(KeyShare, [0, 0])]);
        }

        byte[] list = [.. suites.SelectMany(s => new[] { (byte)((int)s >> 8), (byte)s })];
        byte[] hello = [3, 3, .. new byte[32], 0, .. Vector(list, 2), 1, 0, .. Vector([.. extensions], 2)];
        return [22, 3, 1, .. Vector([1, .. Vector(hello, 3)], 2)];
    }

    private static byte[] Extension(int type, byte[] content) => [(byte)(type >> 8), (byte)type, .. Vector(content, 2)];

    private static byte[] Vector(byte[] content, int lengthSize)
    {
        byte[] length = new byte[4];
        BinaryPrimitives.WriteInt32BigEndian(length, content.Length);
        return [.. length[^lengthSize..], .. content];
    }

    private static ReadOnlySpan<byte> Take(ref ReadOnlySpan<byte> rest, int lengthSize)
    {
        int length = lengthSize == 1 ? rest[0] : BinaryPrimitives.ReadUInt16BigEndian(rest);
        ReadOnlySpan<byte> taken = rest.Slice(lengthSize, length);
        rest = rest[(lengthSize + length)..];
        return taken;
    }

    private static string Hex(ReadOnlySpan<byte> bytes) => Convert.ToHexString(bytes);
}
