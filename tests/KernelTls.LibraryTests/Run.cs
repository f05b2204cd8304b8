using System.Runtime.CompilerServices;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.LibraryTests;

/// <summary>
/// What an operator does before an application starts: sets the variable, or not, and has the machine trust an authority. The
/// libraries are woven in any case.
/// </summary>
internal static class Run
{
    /// <summary>
    /// The mode of this run, KERNELTLS_MODES: in this process a woven library has one. Unset, it is the kernel where there is TLS in
    /// it, and OpenSSL on the socket elsewhere.
    /// </summary>
    public static TlsMode Mode { get; } = Environment.GetEnvironmentVariable("KERNELTLS_MODES") is { Length: > 0 } name
        ? Enum.Parse<TlsMode>(name)
        : Cell.KtlsExpected || File.Exists(TlsStat.Path) ? TlsMode.Kernel : TlsMode.DirectOpenSsl;

    [ModuleInitializer]
    internal static void Prepare()
    {
        Environment.SetEnvironmentVariable(Application.KernelVariable, Mode == TlsMode.Kernel ? "1" : null);
        Environment.SetEnvironmentVariable(Application.DirectVariable, Mode == TlsMode.DirectOpenSsl ? "1" : null);

        // .NET keeps what a user trusts below their home.
        TemporaryDirectory home = new();
        AppDomain.CurrentDomain.ProcessExit += (_, _) => home.Dispose();
        Environment.SetEnvironmentVariable("HOME", home.FullName);
        using X509Store roots = new(StoreName.Root, StoreLocation.CurrentUser, OpenFlags.ReadWrite);
        roots.Add(Certificates.WithoutKey(Certificates.Authority));
    }
}
