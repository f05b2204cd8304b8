using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// The base class of tests that require kernel TLS. They are skipped with the reason if it is not available, and fail
/// if it was promised. After each test, every record was decrypted and no connection is left in the kernel.
/// </summary>
public abstract class KernelTest : IAsyncLifetime
{
    private TlsStatistics _before;

    public static TheoryData<SslProtocols> Versions => [SslProtocols.Tls12, SslProtocols.Tls13];

    /// <summary>OpenSSL before 3.2 receives TLS 1.3 itself.</summary>
    protected static bool ReceivesTls13 => KtlsPlatform.Probe().OpenSslVersion >= new Version(3, 2);

    /// <summary>Returns how many of the two ends of a connection receive in the kernel.</summary>
    protected static int ReceivingEnds(SslProtocols version) => version == SslProtocols.Tls13 && !ReceivesTls13 ? 0 : 2;

    public ValueTask InitializeAsync()
    {
        Cell.RequireKtls();
        _before = TlsStatistics.Read();
        return ValueTask.CompletedTask;
    }

    public virtual async ValueTask DisposeAsync()
    {
        GC.SuppressFinalize(this);
        if (!KtlsPlatform.Probe().IsSupported)
        {
            return;
        }

        Assert.Equal(_before.DecryptError, TlsStatistics.Read().DecryptError);
        await TlsStatistics.UntilAsync(
            now => now.CurrentSendSoftware <= _before.CurrentSendSoftware && now.CurrentReceiveSoftware <= _before.CurrentReceiveSoftware,
            "the kernel to let go of the test's connections");
    }

    internal static Task<TlsPair> ConnectAsync(
        SslProtocols version,
        Action<SslClientAuthenticationOptions>? client = null,
        Action<SslServerAuthenticationOptions>? server = null) =>
        TlsPair.ConnectAsync(TlsMode.Kernel, version, client, server);
}
