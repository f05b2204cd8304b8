using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>Asserts for the whole run that every record was decrypted, whatever the tests did.</summary>
public sealed class KernelFixture : IDisposable
{
    private readonly long _decryptErrors;

    public KernelFixture()
    {
        // Before the first count, because the probe of the process opens and closes its own connections.
        if (KtlsPlatform.Probe().IsSupported)
        {
            _decryptErrors = TlsStatistics.Read().DecryptError;
        }
    }

    public void Dispose()
    {
        if (KtlsPlatform.Probe().IsSupported)
        {
            Assert.Equal(_decryptErrors, TlsStatistics.Read().DecryptError);
        }
    }
}
