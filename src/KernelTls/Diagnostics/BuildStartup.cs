using System.ComponentModel;

namespace KernelTls.Diagnostics;

/// <summary>
/// For the code that the package adds to an application: begins with the process to notice connections that kernel TLS does not reach. Not
/// for use by hand.
/// </summary>
[EditorBrowsable(EditorBrowsableState.Never)]
public static class BuildStartup
{
    /// <summary>Begins, if a switch is on. Does nothing otherwise, and in later calls. Does not throw.</summary>
    public static void Begin() => StockHandshakeMonitor.Start();
}
