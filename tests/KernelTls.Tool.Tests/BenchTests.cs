using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Tests that ktls bench measures, not the values.</summary>
[Trait("cell", "tools")]
public class BenchTests
{
    private static readonly string[] s_rows = ["handshake", "ping-64", "get-64k", "file-4m"];

    [Fact]
    public async Task Every_row_in_both_modes()
    {
        Ktls.Result result = (await Ktls.RunAsync("bench", "--seconds", "0.05", "--json")).AssertExit(ExitCode.Ok);

        JsonElement json = result.Json;
        Schema.AssertMembers(json, "kernelTls", "reason", "emulated", "notes", "rows");
        Assert.Equal(KtlsPlatform.Probe().IsSupported, json.GetProperty("kernelTls").GetBoolean());
        Assert.Equal(KtlsPlatform.Probe().NotSupportedReason.ToString(), json.Text("reason"));
        Assert.Equal(Cell.IsLab, json.GetProperty("emulated").GetBoolean());
        string other = KtlsPlatform.Probe().IsSupported ? "Kernel" : "OpenSsl";
        string[] expected = [.. s_rows.SelectMany(r => new[] { $"{r}/SslStream", $"{r}/{other}" })];
        Assert.Equal(expected, json.GetProperty("rows").EnumerateArray().Select(r => $"{r.Text("row")}/{r.Text("mode")}"));
        Assert.All(json.GetProperty("rows").EnumerateArray(), row =>
        {
            Schema.AssertMembers(row, "row", "operation", "mode", "offload", "operations", "wallMicroseconds", "processorMicroseconds");
            Assert.True(row.GetProperty("operations").GetInt64() > 0);
            Assert.True(row.GetProperty("wallMicroseconds").GetDouble() > 0);
        });
        result.AssertErrors("[8/8] file-4m, " + other);
    }

    [Fact]
    public async Task What_a_figure_is_worth_comes_first()
    {
        Ktls.Result result = (await Ktls.RunAsync("bench", "--seconds", "0.05", "--row", "ping-64")).AssertExit(ExitCode.Ok);

        if (!KtlsPlatform.Probe().IsSupported)
        {
            Assert.StartsWith("No kernel TLS here", result.Output, StringComparison.Ordinal);
        }

        Assert.Equal(Cell.IsLab, result.Output.Contains("its times do not apply to a real one", StringComparison.Ordinal));
        Assert.Contains("ping-64", result.Output, StringComparison.Ordinal);
        Assert.DoesNotContain("get-64k", result.Output, StringComparison.Ordinal);
    }

    [Fact]
    public async Task An_interrupt_leaves_nothing_behind()
    {
        using TemporaryDirectory directory = new();
        TaskCompletionSource nameless = new(TaskCreationOptions.RunContinuationsAsynchronously);
        using FileSystemWatcher watcher = new(directory.FullName, "ktls-bench-*");
        watcher.Deleted += (_, _) => nameless.TrySetResult();
        watcher.EnableRaisingEvents = true;
        using Ktls tool = Ktls.Start([("TMPDIR", directory.FullName)], ["bench", "--seconds", "3600", "--row", "file-4m"]);
        await nameless.Task.InTime("the file that is measured with to lose its name");

        tool.Signal(Ktls.Interrupt);

        (await tool.EndAsync()).AssertExit(ExitCode.Interrupted);
        Assert.Empty(Directory.GetFiles(directory.FullName, "ktls-bench-*"));
    }
}
