using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>Compares the connections that the kernel counts (tls_stat) with those that a test has made.</summary>
internal sealed class KernelCount
{
    private static readonly bool s_kernel = KtlsPlatform.Probe().IsSupported;

    private readonly TlsStatistics _before = Read();

    /// <summary>Gets a value that indicates whether TLS 1.3 is received in the kernel here: OpenSSL before 3.2 receives it itself.</summary>
    public static bool ReceivesTls13 { get; } = s_kernel && KtlsPlatform.Probe().OpenSslVersion >= new Version(3, 2);

    /// <summary>Gets or sets a value that indicates whether the connections receive in the kernel.</summary>
    public bool Receives { get; init; } = ReceivesTls13;

    /// <summary>Asserts how many ends of connections went to the kernel since this object was made: none, where the kernel has no TLS.</summary>
    /// <param name="made">The ends whose peers had a complete handshake. Each sends in the kernel.</param>
    /// <param name="used">Those that have read something. A server's handshake of TLS 1.3 is complete later than its client's.</param>
    public void AssertEnds(int made, int used)
    {
        TlsStatistics after = Read();
        Assert.Equal(s_kernel ? made : 0, after.SendSoftware - _before.SendSoftware);
        Assert.InRange(after.ReceiveSoftware - _before.ReceiveSoftware, Receives ? used : 0, Receives ? made : 0);
        Assert.Equal(0, after.DecryptError - _before.DecryptError);
    }

    /// <summary>Returns how many ends have sent and received in the kernel since this object was made.</summary>
    public (long Sent, long Received) Count()
    {
        TlsStatistics after = Read();
        return (after.SendSoftware - _before.SendSoftware, after.ReceiveSoftware - _before.ReceiveSoftware);
    }

    private static TlsStatistics Read() => s_kernel ? TlsStatistics.Read() : default;
}
