using System.Security.Authentication;
using KernelTls.Tool.Commands;

namespace KernelTls.Tool.Tests;

/// <summary>Tests the first line of info.</summary>
public class VerdictTests
{
    private static readonly InfoReport.ToggleState s_on = new("On", "X=1");

    [Fact]
    public void Everything() => Assert.Equal(
        "yes: the kernel encrypts and decrypts TLS 1.2 and TLS 1.3; switched on by X=1",
        Verdict.Of(KtlsFallbackReason.None, Table(), canRekey: true, s_on));

    [Fact]
    public void Keys_that_cannot_change() => Assert.Equal(
        "yes: the kernel encrypts and decrypts TLS 1.2 and TLS 1.3; TLS 1.3 keys cannot change there, a peer that changes its own ends the connection; switched off by X=0",
        Verdict.Of(KtlsFallbackReason.None, Table(), canRekey: false, new("Off", "X=0")));

    [Fact]
    public void One_direction_less() => Assert.StartsWith(
        "partly: all but receiving TLS 1.3 (OpenSslTooOld) is in the kernel; ",
        Verdict.Of(KtlsFallbackReason.None, Table(KtlsFallbackReason.OpenSslTooOld), canRekey: true, s_on),
        StringComparison.Ordinal);

    /// <summary>With OpenSSL 3.0 the peer's keys are OpenSSL's and may change.</summary>
    [Fact]
    public void Keys_that_cannot_change_in_the_direction_that_is_there() => Assert.Equal(
        "partly: all but receiving TLS 1.3 (OpenSslTooOld) is in the kernel; TLS 1.3 keys cannot change there, a peer that asks this end to change its own ends the connection; switched on by X=1",
        Verdict.Of(KtlsFallbackReason.None, Table(KtlsFallbackReason.OpenSslTooOld), canRekey: false, s_on));

    [Fact]
    public void Nothing() => Assert.StartsWith(
        "no: ModuleMissing: ",
        Verdict.Of(KtlsFallbackReason.ModuleMissing, Table(KtlsFallbackReason.ModuleMissing), canRekey: false, s_on),
        StringComparison.Ordinal);

    private static InfoReport.Capability[] Table(KtlsFallbackReason receiving13 = KtlsFallbackReason.None) =>
    [
        new(KtlsDirections.Send, SslProtocols.Tls12, "AES-256-GCM", KtlsFallbackReason.None),
        new(KtlsDirections.Receive, SslProtocols.Tls12, "AES-256-GCM", KtlsFallbackReason.None),
        new(KtlsDirections.Send, SslProtocols.Tls13, "AES-256-GCM", KtlsFallbackReason.None),
        new(KtlsDirections.Receive, SslProtocols.Tls13, "AES-256-GCM", receiving13),
        new(KtlsDirections.Receive, SslProtocols.Tls13, "ChaCha20-Poly1305", KtlsFallbackReason.KernelTooOld),
    ];
}
