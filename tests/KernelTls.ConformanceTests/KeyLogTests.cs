using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests SSLKEYLOGFILE with the AppContext switch System.Net.EnableSslKeyLogging, as on SslStream.</summary>
/// <remarks>.NET reads both once, at the first handshake, so each case runs in a separate process.</remarks>
[Trait("loop", "outer-kernel")]
public class KeyLogTests
{
    private const string ModeVariable = "KERNELTLS_KEYLOG_MODE";
    private const string FileVariable = "SSLKEYLOGFILE";
    private const string Switch = "System.Net.EnableSslKeyLogging";

    public static TheoryData<TlsMode, bool> All => Modes.With(true, false);

    [Theory]
    [MemberData(nameof(All))]
    public async Task Secrets_are_logged_where_the_application_allows_it_and_only_there(TlsMode mode, bool allowed)
    {
        string[] labels = await SideBySide.RunAsync(mode, each => LogAsync(each, allowed));
        if (allowed)
        {
            Assert.Contains("CLIENT_RANDOM", labels);
            Assert.Contains("CLIENT_TRAFFIC_SECRET_0", labels);
            Assert.Contains("SERVER_HANDSHAKE_TRAFFIC_SECRET", labels);
        }
        else
        {
            Assert.Empty(labels);
        }
    }

    /// <summary>Runs in the separate process. Both ends log.</summary>
    [Fact(Explicit = true)]
    public async Task Shake_hands()
    {
        string[] words = Environment.GetEnvironmentVariable(ModeVariable)!.Split(' ');
        AppContext.SetSwitch(Switch, bool.Parse(words[1]));
        TlsMode mode = Enum.Parse<TlsMode>(words[0]);
        foreach (SslProtocols version in new[] { SslProtocols.Tls12, SslProtocols.Tls13 })
        {
            await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
            await using TlsPair mixed = await TlsPair.ConnectAsync(mode, TlsMode.Stock, version);
            await using TlsPair chosen = await TlsPair.ConnectAsync(mode, version, server: s =>
            {
                s.ServerCertificateContext = null;
                s.ServerCertificateSelectionCallback = (_, _) => Certificates.Ecdsa;
            });
        }
    }

    private static async Task<string[]> LogAsync(TlsMode mode, bool allowed)
    {
        using TemporaryDirectory directory = new();
        await OwnProcess.RunAsync(
            typeof(KeyLogTests), nameof(Shake_hands), (ModeVariable, $"{mode} {allowed}"), (FileVariable, directory["keys"]));

        // Label, client random, secret. Both ends write each line of a connection.
        return File.Exists(directory["keys"])
            ? [.. File.ReadLines(directory["keys"]).Where(l => l != "").Select(l => l.Split(' ') is [var label, { Length: 64 }, { Length: >= 64 }] ? label : $"? {l}").Order()]
            : [];
    }
}
