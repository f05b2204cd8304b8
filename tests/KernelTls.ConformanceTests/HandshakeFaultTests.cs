using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests changes that a peer or an attacker makes to a record of a handshake (RFC 8446, sections 4 and 5; RFC 5246,
/// section 7). The result must be that of SslStream, or an accepted difference.
/// </summary>
[Trait("loop", "outer-kernel")]
public class HandshakeFaultTests(ITestOutputHelper output)
{
    private static readonly bool[] s_ends = [true, false];

    public static TheoryData<TlsMode, SslProtocols> AllOnOpenSsl => Modes.AllOnOpenSsl;

    [Theory]
    [MemberData(nameof(AllOnOpenSsl))]
    public Task Faults_in_a_handshake_come_to_what_they_come_to_on_SslStream(TlsMode mode, SslProtocols version) => FaultMatrix.RunAsync(
        output,
        FaultDifferences.Handshakes,
        mode,
        version,
        from fault in HandshakeFaults.All.Where(f => f.IsIn(version)).Index()
        from toClient in s_ends
        from step in PeerStep.All(isServer: toClient, version == SslProtocols.Tls13).Index()
        where fault.Item.Concerns(step.Item)
        select new HandshakeFaultCase(
            TlsMode.Stock, version, fault.Item, toClient, step.Item, IsBlocking: (step.Index + fault.Index) % 2 == 1),
        static each => each.Fault.Name,
        static (each, engine, mayWait) => (each with { Mode = engine }).RunAsync(mayWait));
}
