using System.Text.Json;
using System.Text.RegularExpressions;
using KernelTls.Offload;
using KernelTls.Tests;
using KernelTls.Tool.Readers;

namespace KernelTls.Tool.Tests;

/// <summary>Tests ktls info.</summary>
[Trait("cell", "smoke")]
[Trait("cell", "tools")]
public partial class InfoTests
{
    private static int Expected => KtlsPlatform.Probe().IsSupported ? ExitCode.Ok : ExitCode.No;

    [Fact]
    public async Task It_says_what_this_process_finds_too()
    {
        Assert.True(KtlsPlatform.Probe().IsSupported || !Cell.KtlsExpected, $"{KtlsPlatform.Probe().NotSupportedReason}");
        Ktls.Result result = await Ktls.RunAsync("info", "--json");

        JsonElement json = result.AssertExit(Expected).Json;
        Schema.AssertMembers(
            json, "verdict", "supported", "reason", "detail", "advice", "toggle", "directOpenSsl", "runtime", "kernel", "module", "openSsl", "capabilities",
            "canRekey", "canExpectNoPadding", "canZeroCopySendFile", "devices", "busyPoll", "counters");
        Schema.AssertMembers(json.GetProperty("module"), "state", "loadedByLooking", "canLoad", "inContainer", "toDo");
        Schema.AssertMembers(json.GetProperty("openSsl"), "version", "text", "builtWithKtls");
        Schema.AssertMembers(json.GetProperty("kernel"), "release", "architecture", "hypervisor", "faults");
        Schema.AssertMembers(json.GetProperty("runtime"), "version", "description", "missing", "changed");
        Assert.Equal(Environment.Version.ToString(), json.Text("runtime", "version"));
        Assert.Equal(("", ""), (json.Text("runtime", "missing"), json.Text("runtime", "changed")));
        Assert.Equal(KtlsPlatform.Probe().NotSupportedReason.ToString(), json.Text("reason"));
        Assert.Equal(KtlsPlatform.KernelRelease, json.Text("kernel", "release"));
        Assert.Equal(
            KernelFaults.In(KtlsPlatform.KernelRelease, Platform.Current.Kernel.CanExpectNoPadding),
            json.GetProperty("kernel").GetProperty("faults").EnumerateArray().Select(f => f.GetString()!));
        Assert.Equal(KtlsPlatform.Probe().OpenSslVersion.ToString(), json.Text("openSsl", "version"));
        Assert.True(json.GetProperty("openSsl").GetProperty("builtWithKtls").GetBoolean());
        Assert.Equal(KtlsPlatform.Probe().CanRekey, json.GetProperty("canRekey").GetBoolean());
        Assert.Equal(KtlsPlatform.Probe().CanExpectNoPadding, json.GetProperty("canExpectNoPadding").GetBoolean());
        Assert.Equal(16, json.GetProperty("capabilities").GetArrayLength());
        Assert.Equal(Cell.KtlsExpected ? "Loaded" : json.Text("module", "state"), json.Text("module", "state"));
        foreach (JsonElement capability in json.GetProperty("capabilities").EnumerateArray())
        {
            Schema.AssertMembers(capability, "direction", "protocol", "cipher", "reason");
        }

        if (KtlsPlatform.Probe().IsSupported)
        {
            Assert.Contains(json.GetProperty("capabilities").EnumerateArray(), c => c.Text("reason") == "None");
            Assert.True(json.GetProperty("counters").GetProperty("TlsTxSw").GetInt64() > 0);
        }
    }

    [Fact]
    public async Task Devices_say_what_they_offload()
    {
        JsonElement json = (await Ktls.RunAsync("info", "--json")).AssertExit(Expected).Json;

        JsonElement loopback = Assert.Single(json.GetProperty("devices").EnumerateArray(), d => d.Text("name") == "lo");
        Schema.AssertMembers(loopback, "name", "features", "statistics", "error");
        Assert.Equal(JsonValueKind.Null, loopback.GetProperty("error").ValueKind);
        string[] features = [.. loopback.GetProperty("features").EnumerateArray().Select(f => f.Text("name"))];
        Assert.Equal( // older kernels also have tls-hw-record
            ["tls-hw-rx-offload", "tls-hw-tx-offload"], features.Except(["tls-hw-record"]).Order(StringComparer.Ordinal));
        Assert.All(loopback.GetProperty("features").EnumerateArray(), f => Assert.False(f.GetProperty("active").GetBoolean()));
    }

    [Fact]
    public async Task The_verdict_comes_first_and_piped_text_is_plain()
    {
        Ktls.Result result = (await Ktls.RunAsync("info")).AssertExit(Expected);

        string[] lines = result.Output.Split('\n');
        Assert.StartsWith(KtlsPlatform.Probe().IsSupported ? "Kernel TLS: " : $"Kernel TLS: no: {KtlsPlatform.Probe().NotSupportedReason}: ", lines[0], StringComparison.Ordinal);
        Assert.Equal(KtlsPlatform.Probe().IsSupported, !lines[0].Contains(" no: ", StringComparison.Ordinal));
        Assert.DoesNotContain('\x1b', result.Output);
        Assert.DoesNotContain('│', result.Output);
        Assert.Equal("", result.Errors);
        Assert.Matches(@"\nfaults      (CVE-[0-9-]+(, CVE-[0-9-]+)*: by its version; your distribution may have backported the fix|none of those in) ", result.Output);
        foreach (string word in new[] { $"runtime     .NET {Environment.Version}, supported by KernelTls", "tls module  ", $"OpenSSL     OpenSSL {KtlsPlatform.Probe().OpenSslVersion}", "AES-256-GCM", "ChaCha20-Poly1305", "tls-hw-tx-offload=off[fixed]", "net.core.busy_read=" })
        {
            Assert.Contains(word, result.Output, StringComparison.Ordinal);
        }

        // Without a trial in the kernel its results are not shown.
        foreach (string word in new[] { "\nkeys ", "\npadding ", "\nzero-copy " })
        {
            Assert.Equal(KtlsPlatform.Probe().IsSupported, result.Output.Contains(word, StringComparison.Ordinal));
        }
    }

    [Theory]
    [InlineData("1", "On", "switched on by DOTNET_SYSTEM_NET_SECURITY_KTLS=1")]
    [InlineData("0", "Off", "switched off by DOTNET_SYSTEM_NET_SECURITY_KTLS=0")]
    [InlineData("yes", "Invalid", "not switched on, DOTNET_SYSTEM_NET_SECURITY_KTLS=yes is neither 1 nor 0")]
    public async Task The_toggle_and_where_it_comes_from(string value, string state, string verdict)
    {
        JsonElement json = (await Ktls.RunAsync([(Ktls.KernelVariable, value)], "info", "--json")).AssertExit(Expected).Json;

        Assert.Equal(state, json.Text("toggle", "state"));
        Assert.Equal($"DOTNET_SYSTEM_NET_SECURITY_KTLS={value}", json.Text("toggle", "source"));
        Assert.Equal(KtlsPlatform.Probe().IsSupported, json.Text("verdict").EndsWith(verdict, StringComparison.Ordinal));
    }

    [Theory]
    [InlineData("", true)]
    [InlineData("NO_COLOR=1 ", false)]
    public async Task A_terminal_gets_colour_unless_it_says_no(string setting, bool colour)
    {
        using ExternalProgram terminal = ExternalProgram.Start(
            "script", null, "-qec", $"unset NO_COLOR; export TERM=xterm-256color; {setting}dotnet '{Ktls.Path}' info || true", "/dev/null");
        string output = await terminal.SucceedAsync();

        Assert.Contains("AES-256-GCM", output, StringComparison.Ordinal);
        Assert.Equal(colour, Colour().IsMatch(output));
        Assert.Equal(colour, output.Contains('│', StringComparison.Ordinal));
    }

    [GeneratedRegex(@"\x1b\[[0-9;]*m")]
    private static partial Regex Colour();
}
