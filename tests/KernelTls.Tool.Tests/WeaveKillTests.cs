using System.Diagnostics;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>
/// Kills the tool while it works. FolderTransactionTests stop at each of its steps; here the process ends as by kill -9 or the kernel's
/// lack of memory.
/// </summary>
public class WeaveKillTests
{
    private const int Libraries = 40;
    private const int Kill = 9;

    [Theory]
    [InlineData("its folder exists", ".kerneltls", true)]
    [InlineData("the first file is staged", ".kerneltls/new/KernelTls.dll", true)]
    [InlineData("a library is staged", ".kerneltls/new/Library20.dll", true)]
    [InlineData("the journal is written", ".kerneltls/journal.json", true)]
    [InlineData("the library is there", "KernelTls.dll", true)]
    [InlineData("a library is replaced", ".kerneltls/new/Library20.dll", false)]
    public async Task While_it_weaves(string point, string file, bool appears)
    {
        using SampleFolder folder = new(Libraries);
        SortedDictionary<string, string> before = folder.Contents();

        await KillAsync(folder, point, file, appears);

        await AssertRunsAsync(folder);
        (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);
        Assert.DoesNotContain("SslStream", await folder.RunAsync((Application.DirectVariable, "1")), StringComparison.Ordinal);
        (await folder.WeaveAsync("--undo")).AssertExit(ExitCode.Ok);
        Assert.Equal(before, folder.Contents());
    }

    [Theory]
    [InlineData("an original is restored", ".kerneltls/originals/Library20.dll")]
    [InlineData("the library is removed", "KernelTls.dll")]
    [InlineData("the originals are gone", ".kerneltls/originals")]
    public async Task While_it_restores(string point, string file)
    {
        using SampleFolder folder = new(Libraries);
        SortedDictionary<string, string> before = folder.Contents();
        (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);

        await KillAsync(folder, point, file, appears: false, "--undo");

        await AssertRunsAsync(folder);
        Ktls.Result undone = await folder.WeaveAsync("--undo");
        Assert.True(undone.ExitCode == ExitCode.Ok || !Directory.Exists(folder.Path(".kerneltls")), undone.Errors);
        SortedDictionary<string, string> after = folder.Contents();
        Assert.True(
            before.SequenceEqual(after),
            $"{string.Join('\n', before.Except(after))}\nbecame\n{string.Join('\n', after.Except(before))}\n"
            + $"{undone.ExitCode} {undone.Output}{undone.Errors}");
    }

    /// <summary>Kills the tool as soon as a file appears, or has been there and disappears, unless it has ended by then.</summary>
    private static async Task KillAsync(SampleFolder folder, string point, string file, bool appears, params string[] arguments)
    {
        string path = folder.Path(file);
        using Ktls tool = Ktls.Start(["weave", folder.FullName, .. arguments]);
        Task<Ktls.Result> end = tool.EndAsync();
        await Limits.Blocking(() =>
        {
            long start = Stopwatch.GetTimestamp();
            bool wasThere = false;
            while (!end.IsCompleted && (Path.Exists(path) ? !appears : appears || !wasThere))
            {
                wasThere |= Path.Exists(path);
                Assert.True(Stopwatch.GetElapsedTime(start) < Limits.Wait, $"Waited {Limits.Wait} until {point}.");
            }
        });
        if (!end.IsCompleted)
        {
            tool.Signal(Kill);
        }

        await end;
    }

    private static async Task AssertRunsAsync(SampleFolder folder)
    {
        string[] streams = (await folder.RunAsync((Application.DirectVariable, "1"))).TrimEnd('\n').Split('\n');
        Assert.Equal(Libraries, streams.Length);
        Assert.All(streams, s => Assert.True(s is "SslStream" or "KtlsStream", s));
    }
}
