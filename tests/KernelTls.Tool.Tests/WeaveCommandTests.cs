#pragma warning disable CA1416 // The tool is for Linux.
using System.Diagnostics;
using System.Globalization;
using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Tests <c>ktls weave</c> on folders that are made without an SDK. PackageTests weaves what the SDK publishes.</summary>
public class WeaveCommandTests
{
    private const string Stock = "SslStream\nSslStream\n", Woven = "KtlsStream\nKtlsStream\n";

    [Theory]
    [InlineData("")]
    [InlineData("/linux-x64")]
    public async Task A_woven_folder_uses_the_library_where_the_variable_says_so_and_undo_gives_the_same_folder_back(string platform)
    {
        using SampleFolder folder = new(platform: platform);
        SortedDictionary<string, string> before = folder.Contents();
        Assert.Equal(Stock, await folder.RunAsync((Application.DirectVariable, "1")));

        Ktls.Result woven = (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);

        Assert.Contains("Library0.dll: 1 place\n", woven.Output, StringComparison.Ordinal);
        Assert.Contains("changed: app.deps.json\n", woven.Output, StringComparison.Ordinal);
        Assert.Equal(Stock, await folder.RunAsync());
        Assert.Equal(Stock, await folder.RunAsync((Application.KernelVariable, "0")));
        Assert.Equal(Woven, await folder.RunAsync((Application.DirectVariable, "1")));
        Assert.Equal(platform.Length == 0, File.Exists(folder.Path($"runtimes/{NativeShim.Platform}/native/libKernelTls.Native.so")));
        Assert.Equal(platform.Length != 0, File.Exists(folder.Path("libKernelTls.Native.so")));

        Assert.Contains(" is as it was: 3 files restored, ", (await folder.WeaveAsync("--undo")).AssertExit(ExitCode.Ok).Output, StringComparison.Ordinal);
        Assert.Equal(before, folder.Contents());
        Assert.Equal(Stock, await folder.RunAsync((Application.DirectVariable, "1")));
    }

    [Fact]
    public async Task A_second_run_changes_nothing()
    {
        using SampleFolder folder = new();
        (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);
        SortedDictionary<string, string> before = folder.Contents();

        Ktls.Result again = (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);

        Assert.Contains("Nothing to do: the folder is woven.", again.Output, StringComparison.Ordinal);
        Assert.Equal(before, folder.Contents());
    }

    [Fact]
    public async Task A_dry_run_lists_assemblies_and_places_and_changes_nothing()
    {
        using SampleFolder folder = new();
        SortedDictionary<string, string> before = folder.Contents();

        string text = (await folder.WeaveAsync("--dry-run")).AssertExit(ExitCode.Ok).Output;
        JsonElement json = (await folder.WeaveAsync("--dry-run", "--json")).AssertExit(ExitCode.Ok).Json;

        Assert.Contains("Library1.dll: 1 place\n    Library1.Maker.Make+0x5: new SslStream\n", text, StringComparison.Ordinal);
        Assert.Contains("added: KernelTls.dll, runtimes/", text, StringComparison.Ordinal);
        Assert.EndsWith("Nothing was changed.\n", text, StringComparison.Ordinal);
        Schema.AssertMembers(json, "folder", "dryRun", "assemblies", "added", "edited");
        Schema.AssertMembers(json.GetProperty("assemblies")[0], "path", "places", "problems", "addsStartup", "removesNativeCode", "wasWoven");
        Assert.Equal(before, folder.Contents());
    }

    [Fact]
    public async Task Named_assemblies_alone_are_woven_and_the_rest_by_a_second_run_and_one_undo_is_for_both()
    {
        using SampleFolder folder = new();
        SortedDictionary<string, string> before = folder.Contents();

        (await folder.WeaveAsync("--include", "library1")).AssertExit(ExitCode.Ok);
        Assert.Equal("SslStream\nKtlsStream\n", await folder.RunAsync((Application.DirectVariable, "1")));
        (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);
        Assert.Equal(Woven, await folder.RunAsync((Application.DirectVariable, "1")));
        (await folder.WeaveAsync("--undo")).AssertExit(ExitCode.Ok);

        Assert.Equal(before, folder.Contents());
    }

    /// <summary>A web application gets the attribute with its libraries first and itself later, so that its files change twice.</summary>
    [Fact]
    public async Task A_file_that_two_runs_change_is_restored_as_it_was_before_the_first()
    {
        using SampleFolder folder = new(framework: "Microsoft.AspNetCore.App");
        SortedDictionary<string, string> before = folder.Contents();

        (await folder.WeaveAsync("--include", "Library0")).AssertExit(ExitCode.Ok);
        Assert.False(File.Exists(folder.Path("KernelTls.AspNetCore.dll")));
        Ktls.Result second = (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);
        Assert.Contains("app.dll: the start-up class of KernelTls.AspNetCore\n", second.Output, StringComparison.Ordinal);
        Assert.Equal(Woven, await folder.RunAsync((Application.DirectVariable, "1")));
        (await folder.WeaveAsync("--undo")).AssertExit(ExitCode.Ok);

        Assert.Equal(before, folder.Contents());
    }

    [Fact]
    public async Task A_plug_in_is_woven_by_all()
    {
        using SampleFolder folder = new(libraries: 1);
        Directory.CreateDirectory(folder.Path("plugins"));
        File.Copy(folder.Path("Library0.dll"), folder.Path("plugins/Plugin.dll"));

        Assert.DoesNotContain("Plugin", (await folder.WeaveAsync("--dry-run")).AssertExit(ExitCode.Ok).Output, StringComparison.Ordinal);
        Assert.Contains(
            "plugins/Plugin.dll: 1 place", (await folder.WeaveAsync("--all")).AssertExit(ExitCode.Ok).Output, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_file_that_was_deployed_since_is_woven_again_and_undo_leaves_what_is_new()
    {
        using SampleFolder folder = new();
        byte[] library = File.ReadAllBytes(folder.Path("Library0.dll"));
        (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);

        File.WriteAllBytes(folder.Path("Library0.dll"), [.. library, 0]);
        (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);
        Assert.Equal(Woven, await folder.RunAsync((Application.DirectVariable, "1")));
        File.WriteAllBytes(folder.Path("Library1.dll"), File.ReadAllBytes(folder.Path(".kerneltls/originals/Library1.dll")));
        Ktls.Result undone = (await folder.WeaveAsync("--undo")).AssertExit(ExitCode.Ok);

        Assert.Contains("  Library1.dll: changed since it was woven, left as it is\n", undone.Output, StringComparison.Ordinal);
        Assert.Equal([.. library, 0], File.ReadAllBytes(folder.Path("Library0.dll")));
        Assert.Equal(Stock, await folder.RunAsync((Application.DirectVariable, "1")));
    }

    [Fact]
    public async Task Undo_is_refused_where_a_changed_file_needs_the_library()
    {
        using SampleFolder folder = new();
        (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);
        folder.Write("app.deps.json", await File.ReadAllTextAsync(folder.Path("app.deps.json")) + "\n");
        SortedDictionary<string, string> before = folder.Contents();

        (await folder.WeaveAsync("--undo")).AssertExit(ExitCode.No).AssertErrors("app.deps.json was changed after it was woven, and needs the library");

        before.Remove(".kerneltls/lock");
        SortedDictionary<string, string> after = folder.Contents();
        after.Remove(".kerneltls/lock");
        Assert.Equal(before, after);
    }

    [Fact]
    public async Task Permissions_stay()
    {
        const UnixFileMode Mode = UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.GroupRead;
        using SampleFolder folder = new();
        File.SetUnixFileMode(folder.Path("Library0.dll"), Mode);
        File.SetUnixFileMode(folder.Program, Mode | UnixFileMode.UserExecute);

        (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);

        Assert.Equal(Mode, File.GetUnixFileMode(folder.Path("Library0.dll")));
        Assert.Equal(Mode | UnixFileMode.UserExecute, File.GetUnixFileMode(folder.Path("KernelTls.dll")));
    }

    /// <summary>A host without a deps.json gives every assembly of the folder to the runtime.</summary>
    [Fact]
    public async Task Without_a_deps_json()
    {
        using SampleFolder folder = new();
        File.Delete(folder.Path("app.deps.json"));

        (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);

        Assert.Equal(Woven, await folder.RunAsync((Application.DirectVariable, "1")));
        Assert.True(File.Exists(folder.Path("libKernelTls.Native.so")));
    }

    [Fact]
    public async Task A_folder_of_150_assemblies_takes_less_than_ten_seconds()
    {
        using SampleFolder folder = new(libraries: 150);
        SortedDictionary<string, string> before = folder.Contents();
        long start = Stopwatch.GetTimestamp();

        JsonElement woven = (await folder.WeaveAsync("--json")).AssertExit(ExitCode.Ok).Json;

        TimeSpan took = Stopwatch.GetElapsedTime(start);
        TestContext.Current.TestOutputHelper?.WriteLine(string.Create(CultureInfo.InvariantCulture, $"{took.TotalSeconds:0.0} s"));
        Assert.Equal(150, woven.GetProperty("assemblies").GetArrayLength());
        Assert.True(Cell.IsLab || took < TimeSpan.FromSeconds(10), $"It took {took}.");
        (await folder.WeaveAsync("--undo")).AssertExit(ExitCode.Ok);
        Assert.Equal(before, folder.Contents());
    }
}
