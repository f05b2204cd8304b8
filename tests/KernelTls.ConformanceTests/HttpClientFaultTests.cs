using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests changes that a server or an attacker makes to the records of a response. The result of HttpClient must be that
/// on SslStream, or an accepted difference.
/// </summary>
/// <remarks>Each fault is tested with one version of HTTP, alternately, and one of each kind with both.</remarks>
public class HttpClientFaultTests(ITestOutputHelper output)
{
    private static readonly bool[] s_versions = [false, true];

    public static TheoryData<TlsMode, SslProtocols> AllOnOpenSsl => Modes.AllOnOpenSsl;

    [Theory]
    [MemberData(nameof(AllOnOpenSsl))]
    public Task Faults_end_as_on_the_stock_client(TlsMode mode, SslProtocols version) => FaultMatrix.RunAsync(
        output,
        FaultDifferences.Http,
        mode,
        version,
        from fault in RecordFaults.All.Where(f => f.IsIn(version) && !f.IsLong).Index()
        from isHttp2 in RecordFaults.OneOfEach.Contains(fault.Item) ? s_versions : [fault.Index % 2 == 0]
        select new HttpClientFaultCase(TlsMode.Stock, version, fault.Item, isHttp2),
        static each => each.Fault.Name,
        static async (each, engine, mayWait) => await (each with { Mode = engine }).RunAsync(mayWait));
}
