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
    private const int Updates = 5;

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task Data_behind_several_key_updates_is_read_in_its_order(bool readFirst)
    {
        using ForeignPeer listener = new();
        using ExternalProgram client = KeyUpdateTests.StartClient(listener);
        await using KtlsStream server = await listener.AcceptAsync(TlsMode.Kernel, SslProtocols.Tls13);
        bool goesOn = KtlsPlatform.CanRekey || !ReceivesTls13;
        TlsStatistics before = TlsStatistics.Read();

        // A read that waits meets the first gap; without one, all of them are there before the first read.
        Task<string>? waiting = readFirst ? KeyUpdateTests.ReadLineAsync(server) : null;
        for (int i = 0; i < Updates; i++)
        {
            await KeyUpdateTests.UpdateAsync(client, request: false);
            await KeyUpdateTests.SayAsync(client, $"behind update {i}");
        }

        try
        {
            for (int i = 0; i < Updates; i++)
            {
                Task<string> reading = i == 0 && waiting is not null ? waiting : KeyUpdateTests.ReadLineAsync(server);
                Assert.Equal($"behind update {i}\n", await reading.InTime($"the line behind update {i}"));
            }
        }
        catch (IOException e) when (!goesOn)
        {
            Assert.IsType<KtlsRekeyException>(e);
            return;
        }

        Assert.True(goesOn, "a cell that cannot rekey went on");
        Assert.Equal(ReceivesTls13 ? Updates : 0, TlsStatistics.Read().ReceiveRekeyOk - before.ReceiveRekeyOk);
    }
}
