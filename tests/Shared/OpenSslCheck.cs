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
            string found = $"{SafeEvpPKeyHandle.OpenSslVersion >> 28} {platform.OpenSslVersion.Major}";
            if (found != $"{promised} {promised}")
            {
                throw new InvalidOperationException(
                    $"KTLS_OPENSSL={promised}, but .NET and the library use {found}. {platform.NotSupportedReason} {platform.NotSupportedDetail}");
            }
        }

        return ValueTask.CompletedTask;
    }

    public ValueTask StopAsync() => ValueTask.CompletedTask;
}
