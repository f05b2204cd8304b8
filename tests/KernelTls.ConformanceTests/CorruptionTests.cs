using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests records that were changed in transit (RFC 8446, section 5.2).</summary>
public class CorruptionTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_record_that_was_changed_is_an_error_and_none_of_it_is_delivered(TlsMode mode, SslProtocols version)
    {
        using SocketPair near = await SocketPair.ConnectAsync();
        using SocketPair far = await SocketPair.ConnectAsync();
        bool changes = false;
        _ = Relay.PassAsync(near.Server, far.Client, static _ => { });
        _ = Relay.PassAsync(far.Client, near.Server, bytes => bytes[^1] ^= (byte)(Volatile.Read(ref changes) ? 1 : 0));
        await using TlsPair pair = await TlsPair.ConnectAsync(
            mode, mode, version, sockets: new SocketPair(near.Client, far.Server));
        byte[] buffer = new byte[4096];
        await pair.Server.WriteAsync(buffer.AsMemory(0, 1000)).InTime("a record");
        await pair.Client.ReadExactlyAsync(buffer.AsMemory(0, 1000)).InTime("a record as it was sent");
        long errors = DecryptErrors(mode);

        Volatile.Write(ref changes, true);
        await pair.Server.WriteAsync(buffer.AsMemory(0, 1000)).InTime("another record");

        await Assert.ThrowsAsync<IOException>(() => pair.Client.ReadAsync(buffer).AsTask().InTime("the changed record"));
        if (pair.Client is KtlsStream { Offload.Receive: not KtlsDataPath.Managed })
        {
            await Assert.ThrowsAsync<IOException>(() => pair.Client.ReadAsync(buffer).AsTask().InTime("a read after the failure"));
            Exception told = await Assert.ThrowsAsync<IOException>(() => pair.Server.ReadAsync(buffer).AsTask().InTime("the alert"));
            Assert.Contains("bad record mac", told.ToString(), StringComparison.Ordinal);
        }

        if (pair.Client is KtlsStream { Offload.Receive: KtlsDataPath.Kernel })
        {
            Assert.InRange(DecryptErrors(mode) - errors, 1, long.MaxValue);
        }
    }

    private static long DecryptErrors(TlsMode mode) => mode == TlsMode.Kernel ? TlsStatistics.Read().DecryptError : 0;
}
