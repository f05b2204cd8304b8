namespace KernelTls.Demo;

/// <summary>Reads the two environment variables that switch kernel TLS for a process.</summary>
internal static class Toggles
{
    private const string KernelVariable = "DOTNET_SYSTEM_NET_SECURITY_KTLS";
    private const string DirectVariable = "DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL";

    /// <summary>
    /// Reads the variables and switches kernel TLS on if neither is set. Call this before the process uses KernelTls, which
    /// reads them once.
    /// </summary>
    /// <exception cref="DemoFailedException">A variable has an invalid value.</exception>
    public static (RequestedMode Mode, string Explanation) Settle()
    {
        bool? kernel = Read(KernelVariable);
        bool direct = Read(DirectVariable) ?? false;
        switch (kernel, direct)
        {
            case (false, _):
                return (RequestedMode.StockSslStream, $"{KernelVariable}=0, set by the caller: kernel TLS is switched off");
            case (true, true) when !KtlsPlatform.Probe().IsSupported:
                return (RequestedMode.OpenSslInstead, $"{KernelVariable}=1 and {DirectVariable}=1, set by the caller: OpenSSL on the socket, for want of kernel TLS");
            case (true, _):
                return (RequestedMode.KernelTls, $"{KernelVariable}={Environment.GetEnvironmentVariable(KernelVariable)}, set by the caller: kernel TLS");
            case (_, true):
                return (RequestedMode.DirectOpenSsl, $"{DirectVariable}=1, set by the caller: OpenSSL on the socket, without the kernel");
            default:
                Environment.SetEnvironmentVariable(KernelVariable, "1");
                return (RequestedMode.KernelTls, $"{KernelVariable}=1, set by the demo: kernel TLS");
        }
    }

    private static bool? Read(string variable)
    {
        string? value = Environment.GetEnvironmentVariable(variable);
        return value?.ToUpperInvariant() switch
        {
            null or "" => null,
            "1" or "TRUE" => true,
            "0" or "FALSE" => false,
            _ => throw new DemoFailedException($"{variable} is '{value}': expected 1, true, 0 or false"),
        };
    }
}
