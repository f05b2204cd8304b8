using System.Diagnostics;
using System.Security.Authentication;
using System.Text.Json;
using KernelTls.Diagnostics;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Tests what ktls info says of a living process, whose connections began before.</summary>
[Trait("cell", "tools")]
public class ProcessInfoTests
{
    private const string Started = "KERNELTLS_TEST_STARTED";

    [Fact]
    public async Task What_is_on_what_is_not_and_why()
    {
        bool kernel = KtlsPlatform.Probe().IsSupported;
        await using TlsPair pair = await TlsPair.ConnectAsync(kernel ? TlsMode.Kernel : TlsMode.DirectOpenSsl, SslProtocols.Tls13);
        KtlsOptions options = new() { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl, Library = "Some.Library" };
        await using KtlsStream wrapped = new(new MemoryStream(), false, options);
        await Assert.ThrowsAnyAsync<IOException>(() => wrapped.AuthenticateAsClientAsync("localhost"));
        ProcessStatus.StockHandshakes.Add(new StockHandshake(false, "mail", "System.Net.Mail", "System.Net.Mail.SmtpConnection", "Mailer"));

        string[] arguments = ["info", "--process", $"{Environment.ProcessId}"];
        Ktls.Result text = (await Ktls.RunAsync(arguments)).AssertExit(kernel ? ExitCode.Ok : ExitCode.No);
        JsonElement json = (await Ktls.RunAsync([.. arguments, "--json"])).AssertExit(kernel ? ExitCode.Ok : ExitCode.No).Json;

        Assert.StartsWith($"Process {Environment.ProcessId}: {(kernel ? "yes" : "no")}: ", text.Output, StringComparison.Ordinal);
        string[] lines = text.Output.Split('\n');
        Assert.Contains(lines, l => l.StartsWith("switch      DOTNET_SYSTEM_NET_SECURITY_KTLS: ", StringComparison.Ordinal));
        Assert.Contains(lines, l => l.StartsWith(
            kernel ? "platform    kernel TLS is available" : $"platform    {KtlsPlatform.Probe().NotSupportedReason}; {Advice.On(KtlsPlatform.Probe().NotSupportedReason)}",
            StringComparison.Ordinal));
        Assert.Contains(lines, l => l.StartsWith("connections ", StringComparison.Ordinal)
            && l.Contains(kernel ? " × send=kernel receive=" : " × send=openssl (DisabledByMode) receive=openssl (DisabledByMode); client, Tls13", StringComparison.Ordinal));
        Assert.Contains(lines, l => l.StartsWith("fallback    Some.Library: 1 × NotSocketStream; client. ", StringComparison.Ordinal)
            && l.EndsWith("The inner stream is a System.IO.MemoryStream.", StringComparison.Ordinal));
        Assert.Contains(lines, l => l.StartsWith(
            "stock       System.Net.Mail: SslStream, not reached by the switch; client of mail, System.Net.Mail (System.Net.Mail.SmtpConnection), called by Mailer",
            StringComparison.Ordinal));
        Schema.AssertMembers(json, "processId", "verdict", "status");
        Schema.AssertMembers(json.GetProperty("status")[0], "what", "subject", "state", "detail", "count");
    }

    /// <summary>Without a switch a process does not load the library.</summary>
    [Fact]
    public async Task A_process_without_the_library()
    {
        using TemporaryDirectory directory = new();
        ProcessStartInfo start = new(
            "dotnet", [typeof(ProcessInfoTests).Assembly.Location, "-explicit", "only", "-method", $"{typeof(ProcessInfoTests).FullName}.{nameof(Waits)}"])
        {
            RedirectStandardOutput = true,
        };
        start.Environment[Started] = directory["started"];
        using Process other = Process.Start(start)!;
        try
        {
            using PeriodicTimer timer = new(TimeSpan.FromMilliseconds(50));
            for (long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds; !File.Exists(directory["started"]);)
            {
                Assert.True(Environment.TickCount64 < deadline, "Waited for the program's start.");
                await timer.WaitForNextTickAsync();
            }

            Ktls.Result result = (await Ktls.RunAsync("info", "--process", $"{other.Id}")).AssertExit(ExitCode.No);

            Assert.StartsWith($"Process {other.Id}: no: it has ", result.Output, StringComparison.Ordinal);
        }
        finally
        {
            other.Kill();
        }
    }

    [Fact(Explicit = true)]
    public async Task Waits()
    {
        File.WriteAllText(Environment.GetEnvironmentVariable(Started)!, "");
        await Task.Delay(2 * Limits.Wait, TestContext.Current.CancellationToken);
        Assert.Fail("Waited to be killed.");
    }

    [Theory]
    [InlineData("0")]
    [InlineData("x")]
    public async Task A_number_that_is_none_is_wrong_usage(string number) =>
        (await Ktls.RunAsync("info", "--process", number)).AssertExit(ExitCode.WrongUsage);

    /// <summary>docs/troubleshooting.md and the tool name these figures.</summary>
    [Fact]
    public async Task The_trial_counts_as_documented()
    {
        bool kernel = KtlsPlatform.Probe().IsSupported;
        TlsStatistics before = kernel ? TlsStatistics.Read() : default;

        Ktls.Result result = await Ktls.RunAsync("info");

        TlsStatistics after = kernel ? TlsStatistics.Read() : default;
        Assert.Equal(kernel ? (11, 10) : (0, 0), (after.SendSoftware - before.SendSoftware, after.ReceiveSoftware - before.ReceiveSoftware));
        Assert.Contains("including 11 TlsTxSw and 10 TlsRxSw of the trial that each process makes", result.Output, StringComparison.Ordinal);
    }
}
