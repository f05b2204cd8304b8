using System.Buffers.Binary;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Contains all faults in the records of a handshake.</summary>
internal static class HandshakeFaults
{
    private const int HeaderSize = 5;

    public static IReadOnlyList<HandshakeFault> All { get; } = [.. Ends(), .. InFront(), .. Changed(), .. Messages()];

    public static HandshakeFault Named(string name) => All.Single(f => f.Name == name);

    private static IEnumerable<HandshakeFault> Ends()
    {
        foreach (FaultEnd end in (FaultEnd[])[FaultEnd.Silence, FaultEnd.Fin, FaultEnd.Reset])
        {
            string what = end switch { FaultEnd.Silence => "silence", FaultEnd.Fin => "FIN", _ => "reset" };
            yield return new HandshakeFault($"{what} before", static (_, _) => []) { Then = PeerChoice.Stop, End = end };
            yield return new HandshakeFault($"half a record, then {what}", static (p, s) => [Whole(p, s) is var r ? r[..(r.Length / 2)] : []])
            {
                Then = PeerChoice.Stop,
                End = end,
            };
            yield return new HandshakeFault($"close_notify, then {what}", static (_, _) => [TlsPeer.Plain(RecordType.Alert, [1, 0])])
            {
                Then = PeerChoice.Stop,
                End = end,
            };
        }
    }

    private static IEnumerable<HandshakeFault> InFront()
    {
        foreach ((byte level, byte description) in ((byte, byte)[])[(1, 0), (1, 90), (1, 100), (2, 40), (2, 80), (3, 80)])
        {
            yield return Plain($"unprotected alert {level}/{description}", RecordType.Alert, level, description);
            yield return Sealed($"alert {level}/{description}", RecordType.Alert, level, description) with { Concerns = static step => step == "Finished" };
        }

        yield return Plain("empty alert", RecordType.Alert);
        yield return Plain("half an alert", RecordType.Alert, 1);
        yield return Plain("unprotected data", RecordType.ApplicationData, 1, 2, 3);
        yield return Sealed("data", RecordType.ApplicationData, 1, 2, 3);
        yield return Plain("empty data record", RecordType.ApplicationData);
        yield return Plain("empty handshake record", RecordType.Handshake);
        yield return Sealed("empty handshake record under the keys", RecordType.Handshake);
        foreach (int type in (int[])[0, 19, 24, 255])
        {
            yield return Plain($"type {type}", (byte)type, 1, 2, 3);
        }

        foreach (int length in (int[])[16384, 16385, 16640, 18433, 65535])
        {
            yield return new HandshakeFault($"length {length}", (_, _) => [TlsPeer.Plain(RecordType.Handshake, new byte[length])]);
        }

        foreach (int count in (int[])[1, 2, 40])
        {
            yield return new HandshakeFault(
                $"ChangeCipherSpec, {count} of them",
                (_, _) => [Enumerable.Range(0, count).SelectMany(_ => TlsPeer.Plain(RecordType.ChangeCipherSpec, [1])).ToArray()]);
        }

        yield return Plain("ChangeCipherSpec with another content", RecordType.ChangeCipherSpec, 2);
        yield return Plain("ChangeCipherSpec, empty", RecordType.ChangeCipherSpec);
        yield return new HandshakeFault("text", static (_, _) => [[.. Encoding.ASCII.GetBytes("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), .. Noise(20_000)]]);
        yield return new HandshakeFault("noise", static (_, _) => [Noise(20_000)]);
    }

    private static IEnumerable<HandshakeFault> Changed()
    {
        yield return Change("type 23", static r => r[0] = RecordType.ApplicationData);
        yield return Change("type 21", static r => r[0] = RecordType.Alert);
        yield return Change("type 150", static r => r[0] = 150);
        yield return Change("major version", static r => r[1] ^= 1);
        yield return Change("minor version", static r => r[2] ^= 4);
        yield return Change("high length bit", static r => r[3] ^= 0x80) with { Then = PeerChoice.Stop, End = FaultEnd.Fin };
        yield return Change("a length of one more", static r => BinaryPrimitives.WriteUInt16BigEndian(r.AsSpan(3), (ushort)(r.Length - HeaderSize + 1))) with { Then = PeerChoice.Stop, End = FaultEnd.Fin };
        yield return Change("first byte of the contents", static r => r[HeaderSize] ^= 1);
        yield return Change("middle", static r => r[(HeaderSize + r.Length) / 2] ^= 0x10) with { Concerns = HasFixedMeaning };
        yield return Change("last byte", static r => r[^1] ^= 0x80) with { Concerns = static step => step != "ClientHello" };
        yield return new HandshakeFault("dropped", static (_, _) => []) { Then = PeerChoice.Skip };
        yield return new HandshakeFault("twice", static (p, s) => [Whole(p, s)]);
        yield return new HandshakeFault("in single bytes", static (p, s) => Whole(p, s).Select(b => (byte[])[b])) { Then = PeerChoice.Skip };
    }

    private static IEnumerable<HandshakeFault> Messages()
    {
        yield return Sealed("HelloRequest", RecordType.Handshake, HandshakeMessages.Message(0));
        yield return Sealed("ClientHello again", RecordType.Handshake, HandshakeMessages.NewClientHello(false, new byte[32], [], null));
        yield return Sealed("ServerHello again", RecordType.Handshake, HandshakeMessages.NewServerHello12(new byte[32], null));
        yield return Sealed("KeyUpdate", RecordType.Handshake, HandshakeMessages.Message(HandshakeMessages.KeyUpdate, 0));
        yield return Sealed("NewSessionTicket", RecordType.Handshake, HandshakeMessages.Message(HandshakeMessages.NewSessionTicket, new byte[20]));
        yield return Sealed("a message of type 99", RecordType.Handshake, HandshakeMessages.Message(99, 1, 2, 3));
        yield return Sealed("a message of 16 MiB", RecordType.Handshake, [HandshakeMessages.Certificate, 0xFF, 0xFF, 0xFF, 1, 2, 3]);
        yield return Message("in records of one byte", static (p, s) => [s.Content.SelectMany(b => p.Seal(s.Type, [b])).ToArray()]) with
        {
            // Certificates are excluded because they are long.
            Concerns = static step => IsMessage(step) && step != "Certificate",
        };
        yield return Message("in records of 50 bytes", static (p, s) => [s.Content.Chunk(50).SelectMany(part => p.Seal(s.Type, part)).ToArray()]);
        yield return Halves("an empty record", static p => p.Seal(RecordType.Handshake, []));
        yield return Halves("an alert", static p => p.Seal(RecordType.Alert, [1, 90]));
        yield return Halves("data", static p => p.Seal(RecordType.ApplicationData, [1, 2, 3]));
        yield return Halves("a ChangeCipherSpec", static _ => TlsPeer.Plain(RecordType.ChangeCipherSpec, [1]));
        yield return Halves("another message", static p => p.Seal(RecordType.Handshake, HandshakeMessages.Message(99, 1)));
        yield return Message("with a byte behind it", static (p, s) => [p.Seal(s.Type, [.. s.Content, 0])]);
        yield return Message("with a length that is too large", static (p, s) => [p.Seal(s.Type, Changed(s, 3, 1))]);
        yield return Message("a byte too short", static (p, s) => [p.Seal(s.Type, [s.Content[0], 0, (byte)((s.Content.Length - 5) >> 8), (byte)(s.Content.Length - 5), .. s.Content[4..^1]])]) with
        {
            Concerns = HasContent,
        };
        yield return Message("with a key that is no point", static (p, s) => [p.Seal(s.Type, WithBadKey(s.Content))]) with
        {
            Concerns = static step => step == "Certificate",
        };
        yield return Message("of type 99", static (p, s) => [p.Seal(s.Type, [99, .. s.Content[1..]])]);
        yield return Message("empty", static (p, s) => [p.Seal(s.Type, HandshakeMessages.Message(s.Content[0]))]) with
        {
            Concerns = HasContent,
        };
    }

    private static bool IsMessage(string step) => step != "ChangeCipherSpec";

    private static bool HasContent(string step) => IsMessage(step) && step != "ServerHelloDone";

    /// <summary>
    /// Returns whether the middle of the message has a fixed meaning. In others it varies: part of a certificate or a
    /// signature.
    /// </summary>
    private static bool HasFixedMeaning(string step) => step is not ("ClientHello" or "Certificate" or "ServerKeyExchange");

    private static byte[] WithBadKey(byte[] content)
    {
        byte[] changed = [.. content];
        ReadOnlySpan<byte> point = Certificates.Ecdsa.PublicKey.EncodedKeyValue.RawData;
        changed[content.AsSpan().IndexOf(point) + (point.Length / 2)] ^= 0x10;
        return changed;
    }

    private static HandshakeFault Plain(string name, byte type, params byte[] content) =>
        new(name, (_, _) => [TlsPeer.Plain(type, content)]);

    private static HandshakeFault Sealed(string name, byte type, params byte[] content) =>
        new(name, (p, _) => [p.Seal(type, content)]);

    private static HandshakeFault Change(string name, Action<byte[]> change) => new(
        name,
        (p, s) =>
        {
            byte[] record = Whole(p, s);
            change(record);
            return [record];
        })
    { Then = PeerChoice.Skip };

    private static HandshakeFault Message(string name, Func<TlsPeer, PeerStep, IEnumerable<byte[]>> bytes) =>
        new(name, bytes) { Then = PeerChoice.Skip, Concerns = IsMessage };

    private static HandshakeFault Halves(string between, Func<TlsPeer, byte[]> make) => Message(
        $"in two records with {between} between them",
        (p, s) => [[.. p.Seal(s.Type, s.Content.AsSpan(0, 3)), .. make(p), .. p.Seal(s.Type, s.Content.AsSpan(3))]]);

    private static byte[] Whole(TlsPeer peer, PeerStep step) =>
        step.Type == RecordType.ChangeCipherSpec ? TlsPeer.Plain(step.Type, step.Content) : peer.Seal(step.Type, step.Content);

    private static byte[] Changed(PeerStep step, int position, byte more)
    {
        byte[] content = [.. step.Content];
        content[position] += more;
        return content;
    }

    private static byte[] Noise(int length)
    {
        byte[] noise = new byte[length];
        new Random(23).NextBytes(noise);
        return noise;
    }
}
