using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

#pragma warning disable SYSLIB0058 // The obsolete strengths are part of the contract.

/// <summary>Tests details of SslStream that other code relies on.</summary>
public class SmallContractTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    [Theory]
    [MemberData(nameof(All))]
    public async Task After_a_shutdown_the_stream_says_that_it_cannot_be_written_to(TlsMode mode, SslProtocols version)
    {
        string said = await SideBySide.RunAsync(mode, async each =>
        {
            await using TlsPair pair = await TlsPair.ConnectAsync(each, version);
            string before = $"{pair.Client.CanRead} {pair.Client.CanWrite}";
            await pair.Client.ShutdownAsync().InTime();
            return $"{before}, {pair.Client.CanRead} {pair.Client.CanWrite}";
        });
        Assert.Equal("True True, True False", said);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_validation_callback_finds_the_strengths_of_the_cipher(TlsMode mode, SslProtocols version)
    {
        foreach (bool ofServer in new[] { false, true })
        {
            string seen = await SideBySide.RunAsync(mode, async each =>
            {
                string strengths = "";
                bool Note(object sender)
                {
                    SslStream stream = (SslStream)sender;
                    strengths = $"{stream.SslProtocol} {stream.NegotiatedCipherSuite} {stream.CipherAlgorithm} {stream.CipherStrength} "
                        + $"{stream.HashAlgorithm} {stream.HashStrength} {stream.KeyExchangeAlgorithm} {stream.KeyExchangeStrength}";
                    return true;
                }

                await using Meeting meeting = await new Meeting(ofServer ? TlsMode.Stock : each, ofServer ? each : TlsMode.Stock, version)
                {
                    ClientOptions = c => c.ClientCertificateContext = Certificates.ClientContext,
                    ServerOptions = s => s.ClientCertificateRequired = true,
                    ClientValidation = ofServer ? null : (sender, _, _, _) => Note(sender),
                    ServerValidation = ofServer ? (sender, _, _, _) => Note(sender) : null,
                }.SucceedAsync();
                return strengths;
            }, $"server: {ofServer}");
            Assert.Contains("Aes256", seen, StringComparison.Ordinal);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_read_that_was_begun_ends_with_the_disposal(TlsMode mode, SslProtocols version)
    {
        string ended = await SideBySide.RunAsync(mode, async each =>
        {
            await using TlsPair pair = await TlsPair.ConnectAsync(each, version);
            IAsyncResult begun = pair.Client.BeginRead(new byte[1], 0, 1, null, null);
            await pair.Client.DisposeAsync();
            Exception? failure = await Limits.Blocking(() => Record.Exception(() => pair.Client.EndRead(begun))).InTime("EndRead");
            return failure!.GetType().Name;
        });
        Assert.NotEmpty(ended);
    }
}
