using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>Around the whole run: no record failed to decrypt, whatever the tests did.</summary>
public sealed class KernelFixture : IDisposable
{
    private readonly long _decryptErrors;

    public KernelFixture()
    {
        // The probe of the process opens and closes connections of its own: before the first count.
        if (KtlsPlatform.IsSupported)
        {
            _decryptErrors = TlsStatistics.Read().DecryptError;
        }
    }

    public void Dispose()
    {
        if (KtlsPlatform.IsSupported)
        {
            Assert.Equal(_decryptErrors, TlsStatistics.Read().DecryptError);
        }
    }
}
