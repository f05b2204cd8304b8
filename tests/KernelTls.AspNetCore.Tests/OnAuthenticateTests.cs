using System.Net.Security;
using KernelTls.Tests;
using Microsoft.AspNetCore.Server.Kestrel.Https;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests that the options passed to Kestrel's OnAuthenticate equal those of the stock server.</summary>
public class OnAuthenticateTests
{
    public static TheoryData<TlsMode, ClientCertificateMode> All => Modes.With(Enum.GetValues<ClientCertificateMode>());

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_options_have_what_the_stock_server_puts_there(TlsMode mode, ClientCertificateMode client)
    {
        await CompareAsync(mode, client, selects: false);
        await CompareAsync(mode, client, selects: true);
    }

    private static async Task CompareAsync(TlsMode mode, ClientCertificateMode client, bool selects)
    {
        string options = await SideBySide.RunAsync(mode, async each =>
        {
            TaskCompletionSource<string> seen = new(TaskCreationOptions.RunContinuationsAsynchronously);
            await using Server server = await Server.StartAsync(each, https =>
            {
                https.ClientCertificateMode = client;
                https.ServerCertificate = selects ? null : https.ServerCertificate;
                https.ServerCertificateSelector = selects ? (_, _) => Certificates.Ecdsa : null;
                https.OnAuthenticate = (_, o) => seen.TrySetResult(Describe(o));
            });
            await using SslStream stream = await server.ConnectAsync(
                configure: c => c.ClientCertificateContext = Certificates.ClientContext);
            return await seen.Task.InTime("OnAuthenticate");
        });
        Assert.Contains($"ServerCertificate: {(selects ? "" : "CN=localhost")},", options, StringComparison.Ordinal);
    }

    private static string Describe(SslServerAuthenticationOptions options) =>
        $"ServerCertificate: {options.ServerCertificate?.Subject}, "
        + $"ServerCertificateContext: {options.ServerCertificateContext?.TargetCertificate.Subject}, "
        + $"selection: {options.ServerCertificateSelectionCallback is not null}, "
        + $"validation: {options.RemoteCertificateValidationCallback is not null}, "
        + $"required: {options.ClientCertificateRequired}, versions: {options.EnabledSslProtocols}, "
        + $"revocation: {options.CertificateRevocationCheckMode}, renegotiation: {options.AllowRenegotiation}, "
        + $"resumption: {options.AllowTlsResume}, policy: {options.EncryptionPolicy}, "
        + $"ALPN: {string.Join(' ', options.ApplicationProtocols ?? [])}, suites: {options.CipherSuitesPolicy is not null}, "
        + $"chain: {options.CertificateChainPolicy is not null}, paddings: {options.AllowRsaPssPadding} {options.AllowRsaPkcs1Padding}";
}
