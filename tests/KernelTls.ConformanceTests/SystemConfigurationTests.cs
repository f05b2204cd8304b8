using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Runs tests with other configurations of OpenSSL. OpenSSL reads openssl.cnf once, when it is loaded, so each run is a
/// separate process.
/// </summary>
[Trait("loop", "outer-kernel")]
public class SystemConfigurationTests
{
    public static TheoryData<string> Configurations =>
    [
        "",
        "CipherString = DEFAULT@SECLEVEL=0",
        "CipherString = ECDHE-RSA-AES128-SHA:AES256-GCM-SHA384:ECDHE-ECDSA-AES128-SHA",
        "CipherString = ECDHE+AESGCM:@STRENGTH",
        "CipherString = DEFAULT@SECLEVEL=3",
        "Ciphersuites = TLS_CHACHA20_POLY1305_SHA256",
        "MinProtocol = TLSv1.3",
        "MaxProtocol = TLSv1.2",
        "MinProtocol = TLSv1.2\nMaxProtocol = TLSv1.2\nGroups = P-384\nSignatureAlgorithms = ECDSA+SHA256:RSA+SHA256:RSA-PSS+SHA256",
        "Options = -SessionTicket,-EncryptThenMac",
    ];

    [Theory]
    [MemberData(nameof(Configurations))]
    public Task What_is_negotiated_follows_the_configuration_as_on_SslStream(string systemDefault) =>
        RunUnderAsync(systemDefault, typeof(DefaultNegotiationTests));

    /// <summary>The configuration must not change what the options define for an end without close_notify.</summary>
    [Fact]
    public Task An_end_without_close_notify_is_what_the_options_say_under_any_configuration() =>
        RunUnderAsync("Options = IgnoreUnexpectedEOF", typeof(TruncationTests));

    private static async Task RunUnderAsync(string systemDefault, Type tests)
    {
        using TemporaryDirectory directory = new();
        string path = directory["openssl.cnf"];
        await File.WriteAllTextAsync(path, $"""
            openssl_conf = init
            [init]
            ssl_conf = ssl
            [ssl]
            {(systemDefault == "" ? "" : "system_default = defaults")}
            [defaults]
            {systemDefault}

            """, TestContext.Current.CancellationToken);

        await OwnProcess.RunAsync(tests, ("OPENSSL_CONF", path));
    }
}
