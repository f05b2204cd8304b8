using System.Net.Security;
using System.Security.Authentication;

namespace KernelTls.Demo;

/// <summary>
/// Checks the data paths and the kernel's counters against the expectation for the requested mode on this platform, which
/// <see cref="KtlsPlatform"/> gives for the protocol and cipher of each connection.
/// </summary>
internal sealed class Expectation
{
    private static readonly KtlsDirections[] s_directions = [KtlsDirections.Send, KtlsDirections.Receive];
    private readonly RequestedMode _mode;

    public Expectation(RequestedMode mode) => _mode = mode;

    /// <exception cref="DemoFailedException">A direction has another data path than expected.</exception>
    public void Check(ConnectionFacts facts)
    {
        foreach (KtlsDirections direction in s_directions)
        {
            KtlsFallbackReason expected = ReasonFor(direction, facts.Protocol, facts.CipherSuite);
            bool isRight = facts.ReasonOf(direction) is { } found ? found == expected : IsStock;
            if (!isRight)
            {
                throw new DemoFailedException(
                    $"{facts.Side}, {ConnectionFacts.NameOf(facts.Protocol)}: expected {direction} {Describe(expected)}, found {facts}");
            }
        }
    }

    /// <summary>Compares the kernel's counters with the streams' reports.</summary>
    /// <exception cref="DemoFailedException">They differ.</exception>
    public void Check(IReadOnlyCollection<ConnectionFacts> ends, KernelCounters before, KernelCounters after)
    {
        Check("TlsTxSw", after.Send - before.Send, CountOf(ends, KtlsDirections.Send));
        Check("TlsRxSw", after.Receive - before.Receive, CountOf(ends, KtlsDirections.Receive));
        Check("TlsDecryptError", after.DecryptErrors - before.DecryptErrors, 0);
    }

    /// <summary>Gets a value that indicates whether Kestrel stays stock, because none of its connections can be in the kernel.</summary>
    private bool IsStock => _mode == RequestedMode.StockSslStream || (_mode == RequestedMode.KernelTls && !KtlsPlatform.Probe().IsSupported);

    private int CountOf(IReadOnlyCollection<ConnectionFacts> ends, KtlsDirections direction) =>
        ends.Count(end => ReasonFor(direction, end.Protocol, end.CipherSuite) == KtlsFallbackReason.None);

    private KtlsFallbackReason ReasonFor(KtlsDirections direction, SslProtocols protocol, TlsCipherSuite suite) => _mode switch
    {
        RequestedMode.StockSslStream => KtlsFallbackReason.DisabledByToggle,
        RequestedMode.DirectOpenSsl => KtlsFallbackReason.NotEnabled,
        RequestedMode.OpenSslInstead => KtlsPlatform.Probe().NotSupportedReason,
        _ => KtlsPlatform.Probe().GetFallbackReason(direction, protocol, suite),
    };

    private static void Check(string counter, long rise, int expected)
    {
        if (rise != expected)
        {
            throw new DemoFailedException(
                $"the kernel's {counter} rose by {rise} where the connections made account for {expected} "
                + "(other programs on this machine that use kernel TLS meanwhile are counted as well)");
        }
    }

    private static string Describe(KtlsFallbackReason expected) =>
        expected == KtlsFallbackReason.None ? "in the kernel" : $"not in the kernel ({expected})";
}
