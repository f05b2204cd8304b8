using KernelTls.Tests;

namespace KernelTls.LibraryTests;

/// <summary>
/// Tests a woven library. The library does the same in every mode. Afterwards the kernel's counters show how many of the process's TLS
/// connections it encrypted: all of them in the mode Kernel, none in the others.
/// </summary>
public abstract class LibraryTest : IAsyncLifetime
{
    private static readonly HandshakeCounter s_handshakes = HandshakeCounter.Instance;

    private readonly string[] _libraries;
    private TlsStatistics _before;
    private int _handshakesBefore;
    private int _ownBefore;
    private int _fallbacksBefore;

    /// <param name="libraries">The woven assemblies that open the test's connections.</param>
    protected LibraryTest(params string[] libraries) => _libraries = libraries;

    /// <summary>Gets the number of handshakes of the test. Both ends count if both are in this process.</summary>
    protected int Handshakes => s_handshakes.All - _handshakesBefore;

    public async ValueTask InitializeAsync()
    {
        // The probe opens and closes connections, and must run before the first count.
        if (Run.Mode == TlsMode.Kernel)
        {
            Cell.RequireKtls();
        }

        await StartAsync();
        BeginCount();
    }

    public async ValueTask DisposeAsync()
    {
        GC.SuppressFinalize(this);
        string errors = ServerErrors;
        await StopAsync();
        if (TestContext.Current.TestState?.Result == TestResult.Passed)
        {
            AssertCounted();
        }
        else if (errors.Length > 0 && TestContext.Current.TestState?.Result == TestResult.Failed)
        {
            Assert.Fail($"The server has written:\n{errors}");
        }
    }

    /// <summary>
    /// Starts the count here. A connection that the server ends right after the handshake may or may not be in the kernel, because the kernel
    /// accepts no socket whose peer has closed.
    /// </summary>
    protected void BeginCount()
    {
        _before = Statistics();
        _handshakesBefore = s_handshakes.All;
        _ownBefore = s_handshakes.Libraries.Length;
        _fallbacksBefore = s_handshakes.Fallbacks.Length;
    }

    /// <summary>Gets what the server has written to its standard error. A failed test shows it.</summary>
    protected virtual string ServerErrors => "";

    /// <summary>Starts the server. Connections during its start are not counted.</summary>
    protected virtual Task StartAsync() => Task.CompletedTask;

    protected virtual Task StopAsync() => Task.CompletedTask;

    private static TlsStatistics Statistics() => File.Exists(TlsStat.Path) ? TlsStatistics.Read() : default;

    private void AssertCounted()
    {
        TlsStatistics now = Statistics();
        int all = Handshakes;
        string[] own = s_handshakes.Libraries[_ownBefore..];
        Assert.True(all > 0, "The test has made no connection.");
        Assert.Equal([], s_handshakes.Fallbacks[_fallbacksBefore..]);
        Assert.Equal(Run.Mode == TlsMode.Stock ? 0 : all, own.Length);
        if (Run.Mode != TlsMode.Stock)
        {
            Assert.Equal(_libraries.Order(), own.Distinct().Order());
        }

        int kernel = Run.Mode == TlsMode.Kernel ? all : 0;
        Assert.Equal(kernel, now.SendSoftware - _before.SendSoftware);

        // OpenSSL before 3.2 receives TLS 1.3 itself.
        bool receives = KtlsPlatform.Probe().OpenSslVersion >= new Version(3, 2);
        Assert.InRange(now.ReceiveSoftware - _before.ReceiveSoftware, receives ? kernel : 0, kernel);
        Assert.Equal(0, now.DecryptError - _before.DecryptError);
    }
}
