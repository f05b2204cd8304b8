using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests JSSE with small key limits: it requests new keys with each record that it reads until the answer arrives, so
/// that an ordinary download causes hundreds of KeyUpdates without data between them.
/// </summary>
[Trait("loop", "outer")]
public class JsseInteropTests : InteropTest
{
    /// <summary>Gets the roles of this end with 1 MiB and 32 MiB for each key.</summary>
    public static TheoryData<bool, string> RolesAndLimits => new()
    {
        { true, "2^20" },
        { true, "2^25" },
        { false, "2^20" },
        { false, "2^25" },
    };

    [Theory]
    [Trait("Pitfall", "4")]
    [MemberData(nameof(RolesAndLimits))]
    public async Task Downloads_uploads_and_echoes_survive_the_peer_s_key_limit(bool serves, string limit)
    {
        using TemporaryDirectory directory = new();
        using ForeignPeer listener = new();
        using ReservedPort port = new();
        using JssePeer peer = serves
            ? await JssePeer.ConnectAsync(listener.Port, limit)
            : await JssePeer.ListenAsync(port.Number, limit, Certificates.Ecdsa, directory);
        await using KtlsStream stream = serves
            ? await listener.AcceptAsync(TlsMode.Kernel, SslProtocols.Tls13)
            : await ConnectAsync(port.Number, SslProtocols.Tls13);
        if (!KtlsPlatform.Probe().CanRekey)
        {
            await AssertKeyUpdateIsRefusedAsync(peer, stream, JssePeer.SizeFor(limit));
            return;
        }

        long size = JssePeer.SizeFor(limit);
        string pattern = JssePeer.DigestOfPattern(size);

        // No read is pending while this end sends: the peer's data waits for the next read.
        Task<string> downloaded = peer.RunAsync($"download {size}");
        await Pattern.SendAsync(stream, size).Within(JssePeer.Limit, "sending to JSSE");
        Assert.Equal(pattern, await downloaded);

        Task<string> uploaded = peer.RunAsync($"upload {size}");
        string received = await JssePeer.DigestOfAsync(stream, size).Within(JssePeer.Limit, "receiving from JSSE");
        Assert.Equal(received, await uploaded);

        Task<string> echoed = peer.RunAsync($"echo {size}");
        Task sending = Pattern.SendAsync(stream, size, chunk: 10_000);
        await Pattern.ReceiveAsync(stream, size).Within(JssePeer.Limit, "what JSSE sends back");
        await sending.InTime("sending to JSSE");
        Assert.Equal(pattern, await echoed);

        Task closing = peer.CloseAsync();
        Assert.Equal(0, await stream.ReadAsync(new byte[1]).InTime("the peer's close_notify"));
        await stream.DisposeAsync();
        await closing;
    }

    /// <summary>
    /// A kernel that cannot change keys cannot serve such a peer: the connection fails with the corresponding error.
    /// </summary>
    private static async Task AssertKeyUpdateIsRefusedAsync(JssePeer peer, KtlsStream stream, long size)
    {
        _ = peer.RunAsync($"upload {size}");
        KtlsRekeyException failure = await Assert.ThrowsAsync<KtlsRekeyException>(
            () => JssePeer.DigestOfAsync(stream, size).Within(JssePeer.Limit, "the key update"));
        Assert.Equal(KtlsRekeyFailure.NotSupported, failure.Failure);
    }
}
