using System.Net.Security;
using System.Security.Authentication;

namespace KernelTls.Demo;

/// <summary>
/// What must come of the environment's wish on this platform, asked of <see cref="KtlsPlatform"/> for what each connection
/// negotiated, and what the kernel must have counted then.
/// </summary>
internal sealed class Expectation
{
    private static readonly KtlsDirections[] s_directions = [KtlsDirections.Send, KtlsDirections.Receive];
    private readonly Wish _wish;

    public Expectation(Wish wish) => _wish = wish;

    /// <exception cref="DemoFailedException">A direction is not where it must be.</exception>
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

    /// <summary>Compares the kernel's word with the streams'.</summary>
    /// <exception cref="DemoFailedException">They differ.</exception>
    public void Check(IReadOnlyCollection<ConnectionFacts> ends, KernelCounters before, KernelCounters after)
    {
        Check("TlsTxSw", after.Send - before.Send, CountOf(ends, KtlsDirections.Send));
        Check("TlsRxSw", after.Receive - before.Receive, CountOf(ends, KtlsDirections.Receive));
        Check("TlsDecryptError", after.DecryptErrors - before.DecryptErrors, 0);
    }

    /// <summary>Kestrel is left alone where none of its connections could be in the kernel.</summary>
    private bool IsStock => _wish == Wish.StockSslStream || (_wish == Wish.KernelTls && !KtlsPlatform.IsSupported);

    private int CountOf(IReadOnlyCollection<ConnectionFacts> ends, KtlsDirections direction) =>
        ends.Count(end => ReasonFor(direction, end.Protocol, end.CipherSuite) == KtlsFallbackReason.None);

    private KtlsFallbackReason ReasonFor(KtlsDirections direction, SslProtocols protocol, TlsCipherSuite suite) => _wish switch
    {
        Wish.StockSslStream => KtlsFallbackReason.DisabledByToggle,
        Wish.DirectOpenSsl => KtlsFallbackReason.DirectOpenSsl,
        _ => KtlsPlatform.GetFallbackReason(direction, protocol, suite),
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
