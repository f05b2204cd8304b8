using System.Security.Authentication;
using System.Text;

namespace KernelTls.Tests;

/// <summary>Contains records that were changed, and records without protection.</summary>
internal static partial class RecordFaults
{
    /// <summary>Returns records in which one or more bits of each part are changed.</summary>
    private static IEnumerable<RecordFault> Changed()
    {
        yield return Change("type 20 for 23", 0, 3);
        yield return Change("type 21 for 23", 0, 2);
        yield return Change("type 22 for 23", 0, 1);
        yield return Change("type 151 for 23", 0, 0x80);
        yield return Change("major version", 1, 1);
        yield return Change("minor version", 2, 2);
        yield return Change("high length bit", 3, 4, Beyond);
        yield return Change("low length bit", 4, 1, Beyond);
        yield return Change("length bit beyond the maximum", 3, 0x80, Beyond);
        yield return Change("explicit nonce", HeaderSize, 1) with { Only = SslProtocols.Tls12 };
        yield return Change("first byte of the contents", HeaderSize + 8, 1);
        yield return Change("middle", FaultScene.Usual / 2, 0x10);
        yield return new RecordFault("first byte of the tag", s => [s.Lost() is var r ? Flip(r, r.Length - 16, 4) : [], s.Lost()]);
        yield return new RecordFault("last byte", s => [s.Lost() is var r ? Flip(r, r.Length - 1, 0x80) : [], s.Lost()]);
    }

    private static RecordFault Change(string name, int position, byte bits, int filler = 0) =>
        new(name, s => [[.. Flip(s.Data(), position, bits), .. s.Data(), .. Filler(filler)]]);

    /// <summary>Returns unprotected records in front of a good record.</summary>
    private static IEnumerable<RecordFault> Unprotected()
    {
        foreach (int length in (int[])[0, 1, 15, 16, 17, 24, 16384, 16401, 16402, 16408, 16409, 16640, 16641, 18432, 18433, 65535])
        {
            yield return InFront($"unprotected type 23, length {length}", Unprotected(RecordType.ApplicationData, length));
        }

        foreach (int type in (int[])[0, 19, 24, 25, 64, 128, 255])
        {
            yield return InFront($"unprotected type {type}", Unprotected((byte)type, 32));
        }

        foreach (int type in (int[])[20, 21, 22])
        {
            yield return InFront($"unprotected type {type}, empty", Unprotected((byte)type, 0));
            yield return InFront($"unprotected type {type}, length 100", Unprotected((byte)type, 100));
        }

        foreach ((byte level, byte description) in ((byte, byte)[])[(1, 0), (1, 90), (1, 100), (2, 10), (2, 40), (3, 80)])
        {
            yield return InFront($"unprotected alert {level}/{description}", TlsPeer.Plain(RecordType.Alert, [level, description]));
        }

        byte[] clientHello = HandshakeMessages.NewClientHello(false, Filler(32), [], null);
        yield return InFront("unprotected HelloRequest", TlsPeer.Plain(RecordType.Handshake, HandshakeMessages.Message(0)));
        yield return InFront("unprotected ClientHello", TlsPeer.Plain(RecordType.Handshake, clientHello));
        yield return InFront("unprotected ServerHello", TlsPeer.Plain(RecordType.Handshake, HandshakeMessages.NewServerHello12(Filler(32), null)));
        yield return InFront(
            "unprotected KeyUpdate", TlsPeer.Plain(RecordType.Handshake, HandshakeMessages.Message(HandshakeMessages.KeyUpdate, 0)));
        yield return InFront("late ChangeCipherSpec", TlsPeer.Plain(RecordType.ChangeCipherSpec, [1]));
        yield return InFront("late ChangeCipherSpec with another content", TlsPeer.Plain(RecordType.ChangeCipherSpec, [2]));
        yield return InFront("late ChangeCipherSpec, twice in a record", TlsPeer.Plain(RecordType.ChangeCipherSpec, [1, 1]));
        yield return InFront("text", [.. Encoding.ASCII.GetBytes("GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n"), .. Filler(Beyond)]);
        yield return InFront("SSL 2", [0x80, 0x20, 1, 3, 3, .. new byte[29]]);
        yield return InFront("noise", Filler(Beyond));
    }

    private static RecordFault InFront(string name, byte[] bytes) => new(name, s => [[.. bytes, .. s.Data()]]);
}
