namespace KernelTls.Offload;

/// <summary>Specifies the operator's setting for the whole process.</summary>
internal enum Toggle
{
    Unset,
    On,
    Off,
    Invalid,
}

/// <summary>
/// Provides the process-wide switches. They are read once: changing an environment variable of a running process has no
/// effect.
/// </summary>
internal static class Toggles
{
    public const string KernelVariable = "DOTNET_SYSTEM_NET_SECURITY_KTLS";
    public const string DirectVariable = "DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL";
    public const string KernelSwitch = "System.Net.Security.Ktls";

    /// <summary>
    /// Gets the value of <see cref="KernelVariable"/>, or of the AppContext switch if the variable is not set.
    /// </summary>
    public static Toggle Kernel { get; } =
        ParseKernel(Environment.GetEnvironmentVariable(KernelVariable), AppContext.TryGetSwitch(KernelSwitch, out bool on) ? on : null);

    /// <summary>Gets the value of <see cref="DirectVariable"/>: OpenSSL on the socket where the kernel cannot.</summary>
    public static Toggle DirectOpenSsl { get; } = Parse(Environment.GetEnvironmentVariable(DirectVariable));

    /// <summary>
    /// Gets a value that indicates whether the operator has switched this library on, or has set a variable to an invalid value, which the library
    /// reports.
    /// </summary>
    public static bool AreOn { get; } = IsAnyOn(Kernel, DirectOpenSsl);

    /// <summary>Gets the setting behind <see cref="Kernel"/>, such as the variable with its value, or an empty string.</summary>
    public static string KernelSource => SourceOf(KernelVariable) is { Length: > 0 } variable ? variable
        : Kernel == Toggle.Unset ? ""
        : $"the AppContext switch {KernelSwitch}";

    /// <summary>Gets the setting behind <see cref="DirectOpenSsl"/>, or an empty string.</summary>
    public static string DirectSource => SourceOf(DirectVariable);

    /// <summary>Gets the variables with a value that is not known, for messages, or an empty string.</summary>
    public static string InvalidDetail => string.Join(
        " ",
        from source in new[] { Kernel == Toggle.Invalid ? KernelSource : "", DirectOpenSsl == Toggle.Invalid ? DirectSource : "" }
        where source.Length != 0
        select $"{source}: expected 1, true, 0 or false.");

    internal static bool IsAnyOn(Toggle kernel, Toggle directOpenSsl) =>
        kernel != Toggle.Off && (kernel != Toggle.Unset || directOpenSsl is Toggle.On or Toggle.Invalid);

    internal static Toggle ParseKernel(string? variable, bool? appContextSwitch)
    {
        Toggle toggle = Parse(variable);
        if (toggle != Toggle.Unset || appContextSwitch is null)
        {
            return toggle;
        }

        return appContextSwitch.Value ? Toggle.On : Toggle.Off;
    }

    private static string SourceOf(string variable) =>
        Environment.GetEnvironmentVariable(variable) is { Length: > 0 } value ? $"{variable}={value}" : "";

    private static Toggle Parse(string? value) => value switch
    {
        null or "" => Toggle.Unset,
        "1" => Toggle.On,
        "0" => Toggle.Off,
        _ when value.Equals("true", StringComparison.OrdinalIgnoreCase) => Toggle.On,
        _ when value.Equals("false", StringComparison.OrdinalIgnoreCase) => Toggle.Off,
        _ => Toggle.Invalid,
    };
}
