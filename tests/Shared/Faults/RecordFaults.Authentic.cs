using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>Contains records that only a peer with the keys can send.</summary>
internal static partial class RecordFaults
{
    private static IEnumerable<RecordFault> Alerts()
    {
        foreach ((byte level, byte description) in ((byte, byte)[])
        [
            (1, 0), (2, 0), (1, 10), (1, 90), (1, 100), (1, 255), (2, 20), (2, 40), (2, 80), (2, 90), (2, 255), (0, 80), (3, 80), (255, 0),
        ])
        {
            yield return SealedInFront($"alert {level}/{description}", RecordType.Alert, [level, description]);
        }

        yield return new RecordFault("four warnings", s => [Join(Times(4, () => s.Sealed(RecordType.Alert, 1, 90))), s.Data()]);
        yield return new RecordFault("forty warnings", s => [Join(Times(40, () => s.Sealed(RecordType.Alert, 1, 90))), s.Data()]);
        yield return SealedInFront("empty alert", RecordType.Alert, []);
        yield return SealedInFront("half an alert", RecordType.Alert, [1]);
        yield return SealedInFront("an alert and a half", RecordType.Alert, [1, 90, 1]);
        yield return SealedInFront("two alerts in a record", RecordType.Alert, [1, 90, 2, 80]);
        yield return new RecordFault(
            "an alert in two records", s => [[.. s.Sealed(RecordType.Alert, 2), .. s.Sealed(RecordType.Alert, 80), .. s.Data()]]);
    }

    private static IEnumerable<RecordFault> Messages()
    {
        (string Name, byte[] Message)[] messages =
        [
            ("HelloRequest", HandshakeMessages.Message(0)),
            ("ClientHello", HandshakeMessages.NewClientHello(false, Filler(32), [], null)),
            ("ClientHello of TLS 1.3", HandshakeMessages.NewClientHello(true, Filler(32), [4, .. Filler(64)], null)),
            ("ServerHello", HandshakeMessages.NewServerHello12(Filler(32), null)),
            ("NewSessionTicket, empty", HandshakeMessages.Message(HandshakeMessages.NewSessionTicket)),
            ("NewSessionTicket of TLS 1.3", HandshakeMessages.Message(
                HandshakeMessages.NewSessionTicket, [0, 0, 0, 9, 1, 2, 3, 4, 1, 7, 0, 4, 9, 9, 9, 9, 0, 0])),
            ("EncryptedExtensions", HandshakeMessages.NewEncryptedExtensions(null)),
            ("CertificateRequest", HandshakeMessages.Message(HandshakeMessages.CertificateRequest, [1, 5, 0, 8, 0, 13, 0, 4, 0, 2, 4, 3])),
            ("Certificate", HandshakeMessages.Message(HandshakeMessages.Certificate, [0, 0, 0, 0])),
            ("Finished", HandshakeMessages.Message(HandshakeMessages.Finished, Filler(32))),
            ("KeyUpdate with another request", HandshakeMessages.Message(HandshakeMessages.KeyUpdate, 2)),
            ("KeyUpdate, empty", HandshakeMessages.Message(HandshakeMessages.KeyUpdate)),
            ("KeyUpdate, two bytes", HandshakeMessages.Message(HandshakeMessages.KeyUpdate, 0, 0)),
            ("message of type 99", HandshakeMessages.Message(99, 1, 2, 3)),
            ("message hash", HandshakeMessages.Message(HandshakeMessages.MessageHash, Filler(32))),
            ("a message of 16 MiB", [HandshakeMessages.NewSessionTicket, 0xFF, 0xFF, 0xFF, .. Filler(1000)]),
            ("half a message", [HandshakeMessages.NewSessionTicket, 0, 0, 100, .. Filler(50)]),
            ("half a message's header", [HandshakeMessages.KeyUpdate, 0]),
        ];
        foreach ((string name, byte[] message) in messages)
        {
            yield return SealedInFront(name, RecordType.Handshake, message);
        }

        yield return SealedInFront("empty handshake record", RecordType.Handshake, []);
        yield return new RecordFault(
            "HelloRequest, ten times", s => [Join(Times(10, () => s.Sealed(RecordType.Handshake, 0, 0, 0, 0))), s.Data()]);
        yield return new RecordFault(
            "HelloRequest in four records", s => [Join(Times(4, () => s.Sealed(RecordType.Handshake, 0))), s.Data()]);
        yield return new RecordFault(
            "NewSessionTicket in records of ten bytes",
            s => [Join(Ticket.Chunk(10).Select(part => s.Sealed(RecordType.Handshake, part))), s.Data()])
        { Only = SslProtocols.Tls13 };
        yield return new RecordFault(
            "NewSessionTicket, a hundred times", s => [Join(Times(100, () => s.Sealed(RecordType.Handshake, Ticket))), s.Data()])
        { Only = SslProtocols.Tls13 };
        yield return SealedInFront("ChangeCipherSpec under the keys", RecordType.ChangeCipherSpec, [1]);
    }

    private static IEnumerable<RecordFault> KeyUpdates()
    {
        foreach (bool requested in new[] { false, true })
        {
            string kind = requested ? "KeyUpdate, requested" : "KeyUpdate";
            foreach (int count in (int[])[1, 2, 10, 100])
            {
                yield return Update($"{kind}, {count} in a row", s => [Join(Times(count, () => s.KeyUpdate(requested))), s.Data()]);
            }

            yield return Update(
                $"{kind}, a hundred between data", s => [Join(Times(100, () => (byte[])[.. s.KeyUpdate(requested), .. s.Data(10)]))]);
            yield return Update($"{kind}, 10000 in a row", s => [Join(Times(10_000, () => s.KeyUpdate(requested))), s.Data()]) with { IsLong = true };
            yield return Update($"{kind} and a changed record", s => [[.. s.KeyUpdate(requested), .. Flip(s.Lost(), 500, 1)]]);
            yield return Update($"{kind} and a record of another version", s => [[.. s.KeyUpdate(requested), .. Flip(s.Lost(), 1, 1)]]);
            yield return Update($"{kind} and a record of length 65535", s => [[.. s.KeyUpdate(requested), .. Unprotected(RecordType.ApplicationData, 65535)]]);
            yield return Update($"{kind} and an alert", s => [[.. s.KeyUpdate(requested), .. s.Sealed(RecordType.Alert, 2, 80)]]);
            yield return Update($"{kind} and close_notify", s => [[.. s.KeyUpdate(requested), .. s.Sealed(RecordType.Alert, 1, 0)]]);
            yield return Update($"{kind} and an end", s => [s.KeyUpdate(requested)]) with { End = FaultEnd.Fin };
            yield return Update($"{kind} and a reset", s => [s.KeyUpdate(requested)]) with { End = FaultEnd.Reset };
            yield return Update($"{kind} with data in its record", s => [[.. s.KeyUpdate(requested, extra: 3), .. s.Data()]]);
        }

        byte[] update = HandshakeMessages.Message(HandshakeMessages.KeyUpdate, 0);
        yield return Update("two KeyUpdates in a record", s => [s.Sealed(RecordType.Handshake, [.. update, .. update]), s.Data()]);
        yield return Update("KeyUpdate in two records", s => InParts(s, update, [2, 3]));
        yield return Update("KeyUpdate in five records", s => InParts(s, update, [1, 1, 1, 1, 1]));
        yield return Update("KeyUpdate with data between its parts", s => InParts(s, update, [2, 3], () => s.Data(10)));
        yield return Update("KeyUpdate with an alert between its parts", s => InParts(s, update, [2, 3], () => s.Sealed(RecordType.Alert, 1, 90)));
        yield return Update("KeyUpdate with an empty record between its parts", s => InParts(s, update, [2, 3], () => s.Data(0)));
        yield return Update("KeyUpdate and the old key", s => [[.. s.Sealed(RecordType.Handshake, update), .. s.Lost()]]);
    }

    private static IEnumerable<RecordFault> Contents()
    {
        yield return Tls13("type 0 under the keys", s => [s.Sealed(0, Filler(10)), s.Data()]);
        foreach (int type in (int[])[19, 24, 25, 99, 255])
        {
            yield return SealedInFront($"type {type} under the keys", (byte)type, Filler(10));
        }

        yield return Tls13("no type under the keys", s => [s.Zeros(10), s.Data()]);
        yield return Tls13("no type under the keys, one byte", s => [s.Zeros(1), s.Data()]);
        yield return Tls13("nothing under the keys", s => [s.Zeros(0), s.Data()]);
        foreach (int type in (int[])[0, 20, 21, 22, 24])
        {
            yield return Tls13($"outer type {type}", s => [s.SealedAs((byte)type, RecordType.ApplicationData, Filler(10)), s.Lost()]);
        }

        yield return new RecordFault("one empty record", s => [s.Data(0), s.Data()]);
        foreach (int count in (int[])[31, 33, 1000, 10_000])
        {
            yield return new RecordFault($"{count} empty records", s => [Join(Times(count, () => s.Data(0))), s.Data()]) { IsLong = count > 100 };
        }

        yield return new RecordFault("forty empty records between data", s => [Join(Times(40, () => (byte[])[.. s.Data(0), .. s.Data(1)]))]);
        yield return new RecordFault("the longest record", s => [s.Data(MaxContent)]);
        yield return new RecordFault("a byte more than the longest record", s => [s.Lost(MaxContent + 1), s.Lost()]);
        yield return new RecordFault("the longest ciphertext and more", s => [s.Lost(MaxContent + 300), s.Lost()]);
        foreach (int padding in (int[])[1, 1000, MaxContent - FaultScene.Usual])
        {
            yield return Tls13($"padding of {padding}", s => [s.Data(padding: padding), s.Data()]);
        }

        yield return Tls13("padding beyond the longest record", s => [s.Data(padding: MaxContent - FaultScene.Usual + 1), s.Data()]);
        yield return Tls13("an empty record with padding", s => [s.Data(0, padding: 100), s.Data()]);
    }

    private static byte[] Ticket => HandshakeMessages.Message(
        HandshakeMessages.NewSessionTicket, [0, 0, 1, 0, 1, 2, 3, 4, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 16, .. Filler(16), 0, 0]);

    private static RecordFault SealedInFront(string name, byte type, byte[] content) =>
        new(name, s => [[.. s.Sealed(type, content), .. s.Data()]]);

    private static RecordFault Tls13(string name, Func<FaultScene, IEnumerable<byte[]>> bytes) => new(name, bytes) { Only = SslProtocols.Tls13 };

    private static RecordFault Update(string name, Func<FaultScene, IEnumerable<byte[]>> bytes) => Tls13(name, bytes);

    /// <summary>Returns a KeyUpdate in parts, each in its own record, and data under the next keys.</summary>
    private static IEnumerable<byte[]> InParts(FaultScene scene, byte[] message, int[] lengths, Func<byte[]>? between = null)
    {
        List<byte> all = [];
        int position = 0;
        foreach (int length in lengths)
        {
            if (position > 0 && between is not null)
            {
                all.AddRange(between());
            }

            all.AddRange(scene.Sealed(RecordType.Handshake, message.AsSpan(position, length)));
            position += length;
        }

        scene.ChangeKeys();
        return [[.. all, .. scene.Data()]];
    }

    private static IEnumerable<byte[]> Times(int count, Func<byte[]> make) => Enumerable.Range(0, count).Select(_ => make());
}
