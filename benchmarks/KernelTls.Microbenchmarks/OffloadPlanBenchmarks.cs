using System.Net.Security;
using System.Security.Authentication;
using BenchmarkDotNet.Attributes;
using KernelTls.Offload;

namespace KernelTls.Microbenchmarks;

/// <summary>Measures the cost of the decision that each connection makes after its handshake.</summary>
public class OffloadPlanBenchmarks
{
    private readonly OffloadFacts _inKernel = Facts(switched: true);
    private readonly OffloadFacts _refused = Facts(switched: false);

    [Benchmark]
    public KtlsOffload InKernel() => OffloadPlan.Decide(_inKernel);

    [Benchmark]
    public KtlsOffload Refused() => OffloadPlan.Decide(_refused);

    private static OffloadFacts Facts(bool switched) => new(
        KtlsFallbackReason.None,
        new Version(3, 5),
        KernelCapabilities.Nothing,
        SslProtocols.Tls13,
        TlsCipherSuite.TLS_AES_256_GCM_SHA384,
        SendSwitched: switched,
        ReceiveSwitched: switched);
}
