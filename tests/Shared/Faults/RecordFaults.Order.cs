namespace KernelTls.Tests;

/// <summary>Contains good records in another order or in other pieces, and ends at any place.</summary>
internal static partial class RecordFaults
{
    private static IEnumerable<RecordFault> Sequences()
    {
        yield return new RecordFault("a record twice", s => [s.Data() is var r ? [.. r, .. r] : []]);
        yield return new RecordFault("a record dropped", s => s.Lost() is null ? [] : [s.Lost()]);
        yield return new RecordFault("two records swapped", s => (s.Lost(), s.Lost()) is var (a, b) ? [[.. b, .. a]] : []);
        yield return new RecordFault("an older record again", s => s.Data(10) is var r ? [r, s.Data(), r] : []);
        yield return new RecordFault("a record in single bytes", s => s.Data(20).Select(b => (byte[])[b]));
        yield return new RecordFault("records split at every byte", SplitEverywhere);
        yield return new RecordFault("control records split at every byte", s => s.IsTls13
            ? Enumerable.Range(1, 25).SelectMany(at => Split(s.KeyUpdate(), at)).Append(s.Data())
            : Enumerable.Range(1, 25).SelectMany(at => Split(s.Sealed(RecordType.Handshake, 0, 0, 0, 0), at)).Append(s.Data()));
        yield return new RecordFault("a hundred records in a segment", s => [Join(Times(100, () => s.Data(100)))]);
        yield return new RecordFault("a thousand small records in a segment", s => [Join(Times(1000, () => s.Data(1)))]) { IsLong = true };
        yield return new RecordFault("many large records in a segment", s => [Join(Times(3, () => s.Data(MaxContent)))]);
        yield return new RecordFault("a hundred records and a changed one", s => [[.. Join(Times(100, () => s.Data(100))), .. Flip(s.Lost(), 50, 1)]]);
    }

    private static IEnumerable<byte[]> SplitEverywhere(FaultScene scene)
    {
        int length = scene.Data(11) is var first ? first.Length : 0;
        return Enumerable.Range(1, length - 1).SelectMany(at => Split(scene.Data(11), at)).Prepend(first);
    }

    private static IEnumerable<byte[]> Split(byte[] record, int at) => [record[..at], record[at..]];

    private static IEnumerable<RecordFault> Ends()
    {
        foreach (FaultEnd end in (FaultEnd[])[FaultEnd.Silence, FaultEnd.Fin, FaultEnd.Reset])
        {
            string what = end switch { FaultEnd.Silence => "silence", FaultEnd.Fin => "FIN", _ => "reset" };
            foreach ((string name, Func<byte[], int> length) in ((string, Func<byte[], int>)[])
            [
                ("nothing", _ => 0),
                ("one byte", _ => 1),
                ("half a header", _ => 3),
                ("a header", _ => HeaderSize),
                ("half a record", r => r.Length / 2),
                ("all but the last byte", r => r.Length - 1),
            ])
            {
                yield return new RecordFault($"{name}, then {what}", s => [s.Lost() is var r ? r[..length(r)] : []]) { End = end };
            }

            if (end == FaultEnd.Silence)
            {
                continue;
            }

            yield return new RecordFault($"data, then {what}", s => [s.Data()]) { End = end };
            yield return new RecordFault($"close_notify, then {what}", s => [s.Sealed(RecordType.Alert, 1, 0)]) { End = end };
            yield return new RecordFault($"a fatal alert, then {what}", s => [s.Sealed(RecordType.Alert, 2, 80)]) { End = end };
            yield return new RecordFault($"a warning, then {what}", s => [s.Sealed(RecordType.Alert, 1, 90)]) { End = end };
            yield return new RecordFault($"half a message, then {what}", s => [s.Sealed(RecordType.Handshake, 4, 0)]) { End = end };
            yield return new RecordFault($"a changed record, then {what}", s => [Flip(s.Lost(), 100, 1)]) { End = end };
            yield return new RecordFault($"a record of another version, then {what}", s => [Flip(s.Lost(), 1, 1)]) { End = end };
            yield return new RecordFault($"a record that is too long, then {what}", s => [Unprotected(RecordType.ApplicationData, 65535)]) { End = end };
        }

        yield return new RecordFault("close_notify twice", s => [[.. s.Sealed(RecordType.Alert, 1, 0), .. s.Sealed(RecordType.Alert, 1, 0)]]);
    }
}
