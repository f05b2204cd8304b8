namespace KernelTls.Interop;

/// <summary>Reads the documented switches of the runtime as the runtime itself reads them.</summary>
internal static class RuntimeSwitch
{
    /// <summary>Returns the value of the AppContext switch or, if the application has not set it, of the environment variable.</summary>
    public static bool IsSet(string appContextSwitch, string variable) =>
        AppContext.TryGetSwitch(appContextSwitch, out bool set)
            ? set
            : Environment.GetEnvironmentVariable(variable) is { } value
                && (value == "1" || value.Equals("true", StringComparison.OrdinalIgnoreCase));
}
