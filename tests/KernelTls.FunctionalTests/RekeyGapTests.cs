using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Between a KeyUpdate and its new key the kernel gives out nothing, however much has come: each read that meets the gap goes
/// on behind it.
/// </summary>
[Trait("Pitfall", "17")]
public class RekeyGapTests : KernelTest
{
    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task Data_behind_several_key_updates_is_read(bool readFirst)
    {
        using ForeignPeer listener = new();
        using ExternalProgram client = KeyUpdateTests.StartClient(listener);
        await using KtlsStream server = await listener.AcceptAsync(TlsMode.Kernel, SslProtocols.Tls13);
        bool goesOn = KtlsPlatform.CanRekey || !ReceivesTls13;
        int updates = goesOn ? 5 : 1;
        TlsStatistics before = TlsStatistics.Read();

        // A read that waits meets the gaps one by one; without one, all of them are there before the first read.
        Task<string>? waiting = readFirst ? KeyUpdateTests.ReadLineAsync(server) : null;
        for (int i = 0; i < updates; i++)
        {
            await OpenSslProgram.UpdateKeysAsync(client, request: false);
        }

        await client.SayAsync("behind the updates");
        try
        {
            Assert.Equal(
                "behind the updates\n", await (waiting ?? KeyUpdateTests.ReadLineAsync(server)).InTime("the line behind the updates"));
        }
        catch (IOException e) when (!goesOn)
        {
            Assert.IsType<KtlsRekeyException>(e);
            return;
        }

        Assert.True(goesOn, "a cell that cannot rekey went on");
        Assert.Equal(ReceivesTls13 ? updates : 0, TlsStatistics.Read().ReceiveRekeyOk - before.ReceiveRekeyOk);
    }
}
