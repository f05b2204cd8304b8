using System.Runtime.Versioning;
using System.Security.Cryptography;
using KernelTls.Tests;
using Xunit.Sdk;
using Xunit.v3;

[assembly: TestPipelineStartup(typeof(OpenSslCheck))]

namespace KernelTls.Tests;

/// <summary>
/// Ends a run before its first test if the cell promises a major version of OpenSSL (<c>KTLS_OPENSSL</c>) that .NET or the library does not use.
/// </summary>
internal sealed class OpenSslCheck : ITestPipelineStartup
{
    [SupportedOSPlatform("linux")]
    public ValueTask StartAsync(IMessageSink diagnosticMessageSink)
    {
        if (Environment.GetEnvironmentVariable("KTLS_OPENSSL") is { Length: > 0 } promised)
        {
            KtlsPlatform platform = KtlsPlatform.Probe();
            if (FindDifference(promised, SafeEvpPKeyHandle.OpenSslVersion >> 28, platform.OpenSslVersion.Major) is { Length: > 0 } difference)
            {
                throw new InvalidOperationException($"{difference} {platform.NotSupportedReason} {platform.NotSupportedDetail}");
            }
        }

        return ValueTask.CompletedTask;
    }

    /// <summary>Returns which major version .NET or the library uses in place of the promised one, or an empty string.</summary>
    public static string FindDifference(string promised, long runtime, int library) =>
        $"{runtime} {library}" == $"{promised} {promised}" ? "" : $"KTLS_OPENSSL={promised}, but .NET and the library use {runtime} {library}.";

    public ValueTask StopAsync() => ValueTask.CompletedTask;
}
