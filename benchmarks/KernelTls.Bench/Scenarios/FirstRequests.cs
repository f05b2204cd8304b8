using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Scenarios;

/// <summary>The first requests of a process, by HttpClient to Kestrel: the connection, and everything that code costs when it first runs.</summary>
/// <remarks>Runs once in a process.</remarks>
internal sealed class FirstRequests(Mode mode, BenchCertificates certificates, HttpExchangeKind kind, int requests)
    : ConcurrentExchange(mode, certificates, kind, requests)
{
    public override Task PrepareAsync() => StartServerAsync();

    /// <summary>Returns one: of HTTP/1.1 there is one request at a time, and by HTTP/2 all requests share a connection.</summary>
    protected override int ConnectionsOf(int operations) => 1;
}
