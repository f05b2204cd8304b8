using System.Diagnostics;
using KernelTls.Tests;

namespace KernelTls.LoadTest.Tests;

/// <summary>Tests eng/crank with a program in crank's place that writes its arguments into a file.</summary>
public class CrankCommandTests
{
    private static readonly string[] s_modes = ["standard", "ktls"];

    private static readonly string s_script = Path.Combine(AppContext.BaseDirectory, "repository", "eng", "crank");

    [Fact]
    public async Task Each_scenario_and_mode_is_a_run_with_all_that_crank_wants_to_be_told()
    {
        using TemporaryDirectory directory = new();
        (int code, _, string[] calls) = await RunAsync(
            directory, "--scenario", "h1-get-0", "--mode", "standard", "ktls", "--server", "10.0.0.2", "--client", "10.0.0.1",
            "--json", directory["results"], "--", "--iterations", "3");

        Assert.Equal(0, code);
        string key = Assert.Single(calls.Select(c => c.Split(' ').Single(w => w.StartsWith("buildKey=", StringComparison.Ordinal))).Distinct());
        Assert.NotEqual("buildKey=", key);
        Assert.Equal(
            s_modes.Select(mode =>
                $"--config benchmarks/crank/kerneltls.benchmarks.yml --scenario h1-get-0 --profile {mode} --profile two-machines "
                + $"--variable serverAddress=10.0.0.2 --variable clientAddress=10.0.0.1 --variable {key} --property scenario=h1-get-0 "
                + $"--property mode={mode} --json {directory["results"]}/h1-get-0-{mode}.json --iterations 3"),
            calls);
        Assert.True(Directory.Exists(directory["results"]));
    }

    /// <summary>Without a profile crank would end with an exception. All names are in the file.</summary>
    [Fact]
    public async Task Defaults_are_names_of_the_file()
    {
        using TemporaryDirectory directory = new();
        (int code, _, string[] calls) = await RunAsync(directory);

        Assert.Equal(0, code);
        Assert.Equal(7 * 3, calls.Length);
        Assert.All(calls, call =>
        {
            string[] words = call.Split(' ');
            Assert.Contains(words[Array.IndexOf(words, "--scenario") + 1], CrankFile.LoadTest.Scenarios.Keys);
            string[] profiles = [.. words.Zip(words.Skip(1)).Where(pair => pair.First == "--profile").Select(pair => pair.Second)];
            Assert.Equal("loopback", profiles[1]);
            Assert.All(profiles, profile => Assert.Contains(profile, CrankFile.LoadTest.Profiles.Keys));
        });
    }

    [Fact]
    public async Task A_run_that_fails_is_told_and_the_others_go_on()
    {
        using TemporaryDirectory directory = new();
        (int code, string said, string[] calls) = await RunAsync(directory, "--scenario", "fails", "rps", "--mode", "ktls");

        Assert.Equal(1, code);
        Assert.Equal(2, calls.Length);
        Assert.Contains("crank: fails in mode ktls failed", said, StringComparison.Ordinal);
    }

    [Fact]
    public async Task One_address_alone_is_refused()
    {
        using TemporaryDirectory directory = new();
        (int code, string said, string[] calls) = await RunAsync(directory, "--server", "10.0.0.2");

        Assert.Equal(2, code);
        Assert.Contains("--server and --client go together", said, StringComparison.Ordinal);
        Assert.Empty(calls);
    }

    private static async Task<(int Code, string Said, string[] Calls)> RunAsync(TemporaryDirectory directory, params string[] arguments)
    {
        string calls = directory["calls"];
        string fake = directory["crank"];
        await File.WriteAllTextAsync(fake, $"#!/bin/sh\necho \"$*\" >> '{calls}'\ncase \"$*\" in *'--scenario fails'*) exit 1 ;; esac\n");
        using (Process permission = Process.Start("chmod", ["+x", fake]))
        {
            await permission.WaitForExitAsync().InTime("chmod to end");
        }

        ProcessStartInfo start = new("bash", [s_script, .. arguments]) { RedirectStandardError = true };
        start.Environment["PATH"] = $"{directory.FullName}:{Environment.GetEnvironmentVariable("PATH")}";
        using Process run = Process.Start(start)!;
        string said = await run.StandardError.ReadToEndAsync().InTime("eng/crank");
        await run.WaitForExitAsync().InTime("eng/crank to end");
        return (run.ExitCode, said, File.Exists(calls) ? await File.ReadAllLinesAsync(calls) : []);
    }
}
