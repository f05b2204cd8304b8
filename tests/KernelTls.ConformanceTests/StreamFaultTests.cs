using System.Collections.Concurrent;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests changes that a peer or an attacker makes to the records of a connection (RFC 8446, section 5; RFC 5246,
/// section 6). The result of a stream must be that of SslStream, or an accepted difference.
/// </summary>
public class StreamFaultTests(ITestOutputHelper output)
{
    private static readonly ConcurrentDictionary<StreamFaultCase, Lazy<Task<FaultOutcome>>> s_known = new();

    /// <summary>
    /// The other readers. Their order makes a blocking reader at one end meet a non-blocking one at the other.
    /// </summary>
    private static readonly FaultReader[] s_others = [FaultReader.AsyncByByte, FaultReader.EmptyFirst, FaultReader.Sync, FaultReader.SyncByByte];

    public static TheoryData<TlsMode, SslProtocols> AllOnOpenSsl => Modes.AllOnOpenSsl;

    [Theory]
    [MemberData(nameof(AllOnOpenSsl))]
    public Task Faults_end_as_on_SslStream(TlsMode mode, SslProtocols version) => FaultMatrix.RunAsync(
        output,
        FaultDifferences.Streams,
        mode,
        version,
        RecordFaults.All.Where(f => f.IsIn(version)).SelectMany((f, index) => CasesOf(version, f, index)),
        static each => each.Fault.Name,
        async (each, engine, mayWait) => engine switch
        {
            TlsMode.Stock => await KnownAsync(each with { Mode = engine }),

            // The kernel's alerts are compared with OpenSSL's, which do not depend on the reader.
            TlsMode.DirectOpenSsl when mode == TlsMode.Kernel =>
                await KnownAsync(each with { Mode = engine, Reader = FaultReader.Async, ReadsFirst = true }),
            _ => await (each with { Mode = engine }).RunAsync(mayWait || each.Fault.End == FaultEnd.Silence),
        });

    /// <summary>
    /// Returns the cases of a fault: the usual reader at both ends, and one of the others at each end.
    /// </summary>
    /// <remarks>
    /// A record that is not authentic needs one reader at each end. The reader, and whether its read is already
    /// waiting, vary from fault to fault. One fault of each kind is tested with every reader in both ways, at both
    /// ends.
    /// </remarks>
    private static IEnumerable<StreamFaultCase> CasesOf(SslProtocols version, RecordFault fault, int index)
    {
        bool isFull = RecordFaults.OneOfEach.Contains(fault);
        bool readsFirst = index % 2 == 0;
        foreach (bool toClient in new[] { true, false })
        {
            FaultReader other = s_others[(index + (toClient ? 0 : 2)) % s_others.Length];
            bool isUsual = fault.IsLong || (fault.IsUnauthentic && toClient == (index % 4 < 2));
            FaultReader[] readers =
                isFull ? Enum.GetValues<FaultReader>()
                : isUsual ? [FaultReader.Async]
                : fault.IsUnauthentic ? [other]
                : [FaultReader.Async, other];
            foreach (FaultReader reader in readers)
            {
                readsFirst = !readsFirst;
                yield return new StreamFaultCase(TlsMode.Stock, version, fault, toClient, reader, readsFirst);
                if (isFull)
                {
                    yield return new StreamFaultCase(TlsMode.Stock, version, fault, toClient, reader, !readsFirst);
                }
            }
        }
    }

    private static Task<FaultOutcome> KnownAsync(StreamFaultCase each) =>
        s_known.GetOrAdd(each, new Lazy<Task<FaultOutcome>>(() => each.RunAsync(mayWait: true))).Value;
}
