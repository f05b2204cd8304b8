/// <summary>Decides whether the hook does anything in a process.</summary>
internal static class HookGate
{
    /// <summary>The first version of .NET that KernelTls supports.</summary>
    private const int FirstVersion = 10;

    /// <summary>Reads an AppContext switch.</summary>
    public delegate bool SwitchReader(string name, out bool isOn);

    /// <summary>Returns whether .NET is new enough, and a switch is on, or has an invalid value, which the library reports.</summary>
    /// <param name="version">The version of .NET.</param>
    /// <param name="variable">The function that reads an environment variable.</param>
    /// <param name="contextSwitch">The function that reads an AppContext switch.</param>
    public static bool IsOpen(Version version, Func<string, string?> variable, SwitchReader contextSwitch)
    {
        if (version.Major < FirstVersion)
        {
            return false;
        }

        string? kernel = variable("DOTNET_SYSTEM_NET_SECURITY_KTLS");
        return string.IsNullOrEmpty(kernel)
            ? contextSwitch("System.Net.Security.Ktls", out bool isOn) ? isOn : IsOn(variable("DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL"))
            : IsOn(kernel);
    }

    private static bool IsOn(string? value) =>
        !string.IsNullOrEmpty(value) && value != "0" && !string.Equals(value, "false", StringComparison.OrdinalIgnoreCase);
}
