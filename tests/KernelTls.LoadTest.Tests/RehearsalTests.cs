using KernelTls.LoadTest.Rehearsal;
using KernelTls.Tests;

namespace KernelTls.LoadTest.Tests;

/// <summary>
/// Tests the two hosts on one machine, if the kernel supports namespaces, and that they do the same as crank's
/// scenarios.
/// </summary>
[Trait("cell", "programs")]
[Trait("loop", "outer")]
public class RehearsalTests
{
    [Fact]
    public async Task Two_hosts_meet_over_a_link_of_their_own()
    {
        Cell.RequireKtls();
        using LoadTestProcess rehearsal = LoadTestProcess.Start(
            Scene.Program,
            null,
            [],
            ["rehearse", "--mtu", "1500", "--scenario", "h1-get-64k", "--mode", "ktls", "--warmup", "0", "--duration", "0.5"]);

        int code = await rehearsal.ExitAsync(Scene.Limit);

        if (KtlsPlatform.Probe().OpenSslVersion < new Version(3, 2))
        {
            // The mode requires the kernel in both directions, which an older OpenSSL does not support.
            Assert.True(code == 1, rehearsal.Said);
            Assert.Contains(nameof(KtlsFallbackReason.OpenSslTooOld), rehearsal.Said, StringComparison.Ordinal);
            Assert.DoesNotContain("ktls-server-", await NamespacesAsync(), StringComparison.Ordinal);
            return;
        }

        Assert.True(code == 0, rehearsal.Said);
        string[] row = rehearsal.Said.Split('\n').Single(l => l.StartsWith("| 1500", StringComparison.Ordinal))
            .Split('|', StringSplitOptions.TrimEntries);
        Assert.Equal(["", "1500", "h1-get-64k", "ktls"], row[..4]);
        Assert.Matches("^[1-9][0-9,]* Mean RPS$", row[4]);

        // 64 KiB in segments of 1448 bytes, and packets without data. A link with larger segments would need fewer.
        Assert.InRange(int.Parse(row[6], System.Globalization.CultureInfo.InvariantCulture), 40, int.MaxValue);
        Assert.Equal(["send=kernel receive=kernel", "send=kernel receive=kernel", ""], row[7..]);
        Assert.Contains("are no measurement", rehearsal.Said, StringComparison.Ordinal);
        Assert.DoesNotContain("ktls-server-", await NamespacesAsync(), StringComparison.Ordinal);
    }

    [Fact]
    public void Its_modes_are_crank_s() =>
        Assert.All(RehearsalMode.All, mode => Assert.Equal(CrankFile.LoadTest.Render("h1-get-0", "client", mode.Name).Environment, mode.Environment));

    /// <summary>Compares each option that a rehearsal sets.</summary>
    [Fact]
    public void Its_scenarios_are_crank_s() => Assert.All(RehearsalScenario.All, scenario =>
    {
        foreach ((string service, string line) in new[] { ("server", scenario.Server), ("client", scenario.Client) })
        {
            string[] arguments = CrankFile.LoadTest.Render(scenario.Name, service, "standard").Arguments;
            string[] words = line.Replace("{n}", "100", StringComparison.Ordinal).Split(' ', StringSplitOptions.RemoveEmptyEntries);
            Assert.Equal($"{scenario.Protocol}-{service}", arguments[0]);
            for (int i = 0; i < words.Length; i += 2)
            {
                int at = Array.IndexOf(arguments, words[i]);
                Assert.True(at > 0, $"{scenario.Name}: {words[i]}");
                Assert.Equal(words[i] == "--connections" ? "1" : words[i + 1], arguments[at + 1]);
            }
        }
    });

    private static async Task<string> NamespacesAsync()
    {
        using ExternalProgram ip = ExternalProgram.Start("ip", null, "netns", "list");
        return await ip.SucceedAsync();
    }
}
