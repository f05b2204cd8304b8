using System.Net.Security;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Diagnostics;
using KernelTls.Handshake;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.UnitTests;

/// <summary>
/// Tests that a runtime whose private members behave differently is detected before that causes harm.
/// </summary>
public class RuntimeCanaryTests
{
    private static readonly Dictionary<string, (RuntimeCanary.ValidateFunction Validate, string Says)> s_changes = new()
    {
        ["its two booleans are swapped"] = (
            (chain, certificate, checkName, host) => RuntimeInternals.ValidateCertificate(chain, certificate, checkName: false, host),
            "reports a certificate for canary.test that is trusted as None, by the name other.test which is checked; expected RemoteCertificateNameMismatch"),
        ["the name is always checked"] = (
            (chain, certificate, _, host) => RuntimeInternals.ValidateCertificate(chain, certificate, checkName: true, host),
            "as RemoteCertificateNameMismatch, by the name other.test which is not checked; expected None"),
        ["the chain is not built"] = (
            (chain, certificate, checkName, host) =>
                RuntimeInternals.ValidateCertificate(chain, certificate, checkName, host) & ~SslPolicyErrors.RemoteCertificateChainErrors,
            "not trusted as None, by the name canary.test which is checked; expected RemoteCertificateChainErrors"),
        ["a result is remembered"] = (Remember(), "as None, by the name other.test which is checked"),
        ["it refuses whatever it gets"] = (
            (_, _, _, _) => SslPolicyErrors.RemoteCertificateNotAvailable,
            "as RemoteCertificateNotAvailable, by the name canary.test which is checked; expected None"),
        ["it throws"] = (
            (_, _, _, _) => throw new NotSupportedException("gone"), "failed: NotSupportedException: gone"),
    };

    public static TheoryData<string> Changes => [.. s_changes.Keys];

    /// <summary>One of the trials needs OpenSSL.</summary>
    static RuntimeCanaryTests() => Assert.NotNull(Platform.Current);

    [Fact]
    public void This_runtime_does_what_this_library_expects() => Assert.Equal("", RuntimeCanary.FindChange());

    [Theory]
    [MemberData(nameof(Changes))]
    public void A_validation_that_means_something_else_is_named(string what)
    {
        (RuntimeCanary.ValidateFunction validate, string says) = s_changes[what];

        Assert.Contains(
            says,
            Find(validate),
            StringComparison.Ordinal);
    }

    [Fact]
    public void What_does_not_read_back_is_named()
    {
        AssertFound("SslStream.NegotiatedApplicationProtocol returns ''", (stream, protocol, suite, _, inHandshake) =>
            RuntimeInternals.Publish(stream, protocol, suite, null, inHandshake));
        AssertFound("SslStream returns Tls12 ", (stream, _, suite, alpn, inHandshake) =>
            RuntimeInternals.Publish(stream, SslProtocols.Tls12, suite, alpn, inHandshake));
        AssertFound("failed: InvalidOperationException", (_, _, _, _, _) => { });
        Assert.Contains(
            "SslStream.TargetHostName returns ''",
            Find(publishTargetHost: (_, _) => { }),
            StringComparison.Ordinal);
        Assert.Contains("failed: SslException", Find(publishCertificate: (stream, _) => Bystanders.Publish(stream, null)), StringComparison.Ordinal);
        Assert.Contains("SslStream.TransportContext returns another", Find(publishCertificate: (_, _) => { }), StringComparison.Ordinal);

        static void AssertFound(string what, RuntimeCanary.PublishFunction publish) => Assert.Contains(
            what, Find(publish: publish), StringComparison.Ordinal);
    }

    [Fact]
    public void A_change_is_a_reason_of_its_own_that_is_reported()
    {
        (KtlsFallbackReason reason, string detail) = Platform.GetRuntimeReason("", () => "X answers Y");

        Assert.Equal(KtlsFallbackReason.RuntimeChanged, reason);
        Assert.Equal($"{RuntimeInformation.FrameworkDescription}: X answers Y.", detail);
        Assert.False(KtlsEventSource.IsChoice(reason));
    }

    [Fact]
    public void A_member_that_is_missing_is_named_and_nothing_is_tried()
    {
        (KtlsFallbackReason reason, string detail) = Platform.GetRuntimeReason(
            "Socket.SetToConnected", () => throw new InvalidOperationException("tried"));

        Assert.Equal(KtlsFallbackReason.RuntimeNotSupported, reason);
        Assert.Equal($"{RuntimeInformation.FrameworkDescription} lacks Socket.SetToConnected.", detail);
    }

    [Fact]
    public void A_runtime_as_it_is_expected_gives_no_reason() =>
        Assert.Equal((KtlsFallbackReason.None, ""), Platform.GetRuntimeReason(RuntimeInternals.Missing, RuntimeCanary.FindChange));

    private static string Find(
        RuntimeCanary.ValidateFunction? validate = null,
        RuntimeCanary.PublishFunction? publish = null,
        Action<SslStream, string>? publishTargetHost = null,
        Action<SslStream, X509Certificate2>? publishCertificate = null) => RuntimeCanary.FindChange(
            validate ?? RuntimeInternals.ValidateCertificate,
            publish ?? RuntimeInternals.Publish,
            publishTargetHost ?? RuntimeInternals.PublishTargetHost,
            publishCertificate ?? Bystanders.Publish);

    private static RuntimeCanary.ValidateFunction Remember()
    {
        SslPolicyErrors? remembered = null;
        return (chain, certificate, checkName, host) => remembered ??= RuntimeInternals.ValidateCertificate(chain, certificate, checkName, host);
    }
}
