using System.Runtime.CompilerServices;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.LibraryTests;

/// <summary>
/// Prepares the process as an operator would: sets the variable or leaves it unset, and makes the machine trust an authority. The
/// libraries are always woven.
/// </summary>
internal static class Run
{
    /// <summary>
    /// Gets the mode of this run (KERNELTLS_MODES), because a process has one mode for all woven libraries. The default is Kernel if the
    /// kernel has TLS, and DirectOpenSsl otherwise.
    /// </summary>
    public static TlsMode Mode { get; } = Environment.GetEnvironmentVariable("KERNELTLS_MODES") is { Length: > 0 } name
        ? Enum.Parse<TlsMode>(name)
        : Cell.KtlsExpected || File.Exists(TlsStat.Path) ? TlsMode.Kernel : TlsMode.DirectOpenSsl;

    [ModuleInitializer]
    internal static void Prepare()
    {
        Environment.SetEnvironmentVariable(Application.KernelVariable, Mode == TlsMode.Kernel ? "1" : null);
        Environment.SetEnvironmentVariable(Application.DirectVariable, Mode == TlsMode.DirectOpenSsl ? "1" : null);

        // .NET stores a user's trusted certificates below the home directory.
        TemporaryDirectory home = new();
        AppDomain.CurrentDomain.ProcessExit += (_, _) => home.Dispose();
        Environment.SetEnvironmentVariable("HOME", home.FullName);
        using X509Store roots = new(StoreName.Root, StoreLocation.CurrentUser, OpenFlags.ReadWrite);
        roots.Add(Certificates.WithoutKey(Certificates.Authority));
    }
}
