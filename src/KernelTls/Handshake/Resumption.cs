using System.Globalization;

namespace KernelTls.Handshake;

/// <summary>The runtime's own switches for session resumption, by their names; read once.</summary>
internal static class Resumption
{
    private const int DefaultClientSessions = 500;

    /// <summary>AppContext switch <c>System.Net.Security.DisableTlsResume</c>, or its environment variable: no resumption in this process.</summary>
    public static bool Disabled { get; } = IsSet(
        "System.Net.Security.DisableTlsResume", "DOTNET_SYSTEM_NET_SECURITY_DISABLETLSRESUME");

    /// <summary>
    /// AppContext switch <c>System.Net.Security.RevalidateCertificateOnTlsResume</c>, or its environment variable: the chain is
    /// built anew on each resumed connection. The name is the one that .NET proposes for its own (dotnet/runtime, #133174).
    /// </summary>
    public static bool Revalidates { get; } = IsSet(
        "System.Net.Security.RevalidateCertificateOnTlsResume", "DOTNET_SYSTEM_NET_SECURITY_REVALIDATECERTIFICATEONTLSRESUME");

    /// <summary>How many sessions this process's clients keep.</summary>
    public static int ClientSessions { get; } =
        int.TryParse(
            AppContext.GetData("System.Net.Security.TlsCacheSize") as string
                ?? Environment.GetEnvironmentVariable("DOTNET_SYSTEM_NET_SECURITY_TLSCACHESIZE"),
            CultureInfo.InvariantCulture,
            out int size) && size >= 0
            ? size
            : DefaultClientSessions;

    private static bool IsSet(string appContextSwitch, string variable) =>
        AppContext.TryGetSwitch(appContextSwitch, out bool set)
            ? set
            : Environment.GetEnvironmentVariable(variable) is "1" or "true" or "True" or "TRUE";
}
