using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>Tests the conditions under which OpenSSL silently keeps the keys, as far as they can occur.</summary>
/// <remarks>
/// See <see cref="OffloadTests"/> for a cipher that no kernel implements. Compression is disabled, and the BIO is
/// always the socket's. There is no access to the record length of our contexts, and to their padding only by
/// RecordPadding in openssl.cnf: KernelRefused (OpenSSL 3.5 and 3.6; 3.0 installs its keys in the kernel nevertheless,
/// and does not pad).
/// </remarks>
[Trait("Pitfall", "12")]
[Trait("cell", "smoke")]
public class SilentFallbackTests : KernelTest
{
    [Theory]
    [MemberData(nameof(Versions))]
    public async Task A_client_that_wants_short_records_has_them_from_OpenSSL(SslProtocols version)
    {
        using ForeignPeer listener = new();
        using TemporaryDirectory directory = new();
        TlsStatistics before = TlsStatistics.Read();
        using ExternalProgram client = OpenSslProgram.Connect(listener.Port, directory, version, "-maxfraglen", "1024", "-quiet");
        (KtlsStream server, Socket socket) = await listener.AcceptAsync(
            new KtlsOptions { Mode = KtlsMode.Preferred }, o => o.EnabledSslProtocols = version);
        await using KtlsStream closing = server;

        Assert.Equal(KtlsFallbackReason.MaxFragmentLength, server.Offload.SendFallbackReason);
        Assert.Equal(
            ReceivingEnds(version) == 2 ? KtlsFallbackReason.MaxFragmentLength : KtlsFallbackReason.OpenSslTooOld,
            server.Offload.ReceiveFallbackReason);
        Assert.Equal(KtlsDirections.None, KernelWord.DirectionsOf(socket));
        Assert.Equal(
            (before.SendSoftware, before.ReceiveSoftware), (TlsStatistics.Read().SendSoftware, TlsStatistics.Read().ReceiveSoftware));
        await client.Input.WriteAsync(Pattern.Take(100_000));
        await client.Input.FlushAsync();
        await Pattern.ReceiveAsync(server, 100_000).InTime("the program's data");
        await Task.WhenAll(
            Pattern.SendAsync(server, 100_000), Pattern.ReceiveAsync(client.Output, 100_000)).InTime("data to the program");
    }
}
