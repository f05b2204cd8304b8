using System.Globalization;

namespace KernelTls.Handshake;

/// <summary>The runtime's own switches for session resumption, by their names; read once.</summary>
internal static class Resumption
{
    private const int DefaultClientSessions = 500;

    /// <summary>AppContext switch <c>System.Net.Security.DisableTlsResume</c>, or its environment variable: no resumption in this process.</summary>
    public static bool Disabled { get; } =
        AppContext.TryGetSwitch("System.Net.Security.DisableTlsResume", out bool disabled)
            ? disabled
            : Environment.GetEnvironmentVariable("DOTNET_SYSTEM_NET_SECURITY_DISABLETLSRESUME") is "1" or "true" or "True" or "TRUE";

    /// <summary>How many sessions this process's clients keep.</summary>
    public static int ClientSessions { get; } =
        int.TryParse(
            AppContext.GetData("System.Net.Security.TlsCacheSize") as string
                ?? Environment.GetEnvironmentVariable("DOTNET_SYSTEM_NET_SECURITY_TLSCACHESIZE"),
            CultureInfo.InvariantCulture,
            out int size) && size >= 0
            ? size
            : DefaultClientSessions;
}
