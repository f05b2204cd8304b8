using System.Globalization;
using KernelTls.Interop;

namespace KernelTls.Handshake;

/// <summary>Reads the runtime's own switches for session resumption, once.</summary>
internal static class Resumption
{
    private const int DefaultClientSessions = 500;

    /// <summary>
    /// Gets a value that indicates whether resumption is disabled in this process, by the AppContext switch
    /// <c>System.Net.Security.DisableTlsResume</c> or its environment variable.
    /// </summary>
    public static bool Disabled { get; } = RuntimeSwitch.IsSet(
        "System.Net.Security.DisableTlsResume", "DOTNET_SYSTEM_NET_SECURITY_DISABLETLSRESUME");

    /// <summary>
    /// Gets a value that indicates whether the chain is built again on each resumed connection, by the AppContext
    /// switch <c>System.Net.Security.RevalidateCertificateOnTlsResume</c> or its environment variable. .NET proposes
    /// the same name for its own switch (dotnet/runtime, #133174).
    /// </summary>
    public static bool Revalidates { get; } = RuntimeSwitch.IsSet(
        "System.Net.Security.RevalidateCertificateOnTlsResume", "DOTNET_SYSTEM_NET_SECURITY_REVALIDATECERTIFICATEONTLSRESUME");

    /// <summary>Gets the maximum number of sessions that clients in this process store.</summary>
    public static int ClientSessions { get; } =
        int.TryParse(
            AppContext.GetData("System.Net.Security.TlsCacheSize") as string
                ?? Environment.GetEnvironmentVariable("DOTNET_SYSTEM_NET_SECURITY_TLSCACHESIZE"),
            CultureInfo.InvariantCulture,
            out int size) && size >= 0
            ? size
            : DefaultClientSessions;
}
