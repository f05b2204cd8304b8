using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests changes that a client or an attacker makes to the records of a request. The result of Kestrel must be that on
/// SslStream, or an accepted difference.
/// </summary>
/// <remarks>
/// Each fault is tested with one version of HTTP, the one that HttpClient's tests do not use for it; one of each kind
/// with both.
/// </remarks>
[Trait("loop", "outer-kernel")]
public class KestrelFaultTests(ITestOutputHelper output)
{
    private static readonly bool[] s_versions = [false, true];

    public static TheoryData<TlsMode, SslProtocols> AllOnOpenSsl => Modes.AllOnOpenSsl;

    [Theory]
    [MemberData(nameof(AllOnOpenSsl))]
    public async Task Faults_end_as_on_the_stock_server(TlsMode mode, SslProtocols version)
    {
        FaultObserver observer = new();
        Dictionary<TlsMode, Server> servers = [];
        foreach (TlsMode engine in new HashSet<TlsMode> { TlsMode.Stock, TlsMode.DirectOpenSsl, mode })
        {
            servers[engine] = await Server.StartAsync(engine, application: observer.Map);
            servers[engine].FailsOnPurpose = true;
        }

        try
        {
            await FaultMatrix.RunAsync(
                output,
                FaultDifferences.Kestrel,
                mode,
                version,
                from fault in RecordFaults.All.Where(f => f.IsIn(version) && !f.IsLong).Index()
                from isHttp2 in RecordFaults.OneOfEach.Contains(fault.Item) ? s_versions : [fault.Index % 2 == 1]
                select new KestrelFaultCase(version, fault.Item, isHttp2),
                static each => each.Fault.Name,
                async (each, engine, mayWait) => await each.RunAsync(servers[engine], observer, mayWait));
        }
        finally
        {
            foreach (Server server in servers.Values)
            {
                await server.DisposeAsync();
            }
        }
    }
}
