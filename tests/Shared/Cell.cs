namespace KernelTls.Tests;

/// <summary>Describes where the tests run: on a host, or in a lab cell that promises kernel TLS.</summary>
internal static class Cell
{
    /// <summary>Gets the name of the lab cell, or an empty string on a host.</summary>
    public static string Name { get; } = Environment.GetEnvironmentVariable("KTLS_CELL") ?? "";

    /// <summary>
    /// Gets a value that indicates whether kernel TLS is promised here: its absence is a failure, not a reason to skip.
    /// </summary>
    public static bool KtlsExpected { get; } = Environment.GetEnvironmentVariable("KTLS_EXPECTED") == "1";

    public static bool IsLab => Name.Length > 0;

    /// <summary>Skips the test if the kernel has no TLS, or fails it if kernel TLS was promised.</summary>
    public static void RequireKtls()
    {
        if (KtlsPlatform.Probe().IsSupported)
        {
            return;
        }

        string why = $"no kernel TLS here: {KtlsPlatform.Probe().NotSupportedReason} {KtlsPlatform.Probe().NotSupportedDetail}".TrimEnd();
        if (KtlsExpected)
        {
            Assert.Fail($"KTLS_EXPECTED=1, and {why}");
        }

        Assert.Skip(why);
    }
}
