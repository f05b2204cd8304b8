using System.Globalization;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Tests that <c>ktls weave</c> refuses what it cannot do with a reason, and leaves every byte as it was.</summary>
public class WeaveRefusalTests
{
    [Theory]
    [InlineData("no-configuration", "is not a published application: it has no file *.runtimeconfig.json")]
    [InlineData("single-file", "is a single file with the assemblies in it. Publish it without PublishSingleFile.")]
    [InlineData("native", "is compiled to native code (NativeAOT) and has no assemblies.")]
    [InlineData("old-runtime", "app is an application of .NET 8.0.0, and KernelTls needs .NET 10.")]
    [InlineData("no-entry", "has no app.dll beside it.")]
    [InlineData("no-target", "is not the deps.json of an application")]
    [InlineData("damaged-configuration", "is not the runtimeconfig.json of an application")]
    [InlineData("windows", "app is for win-x64, and KernelTls is for linux-")]
    [InlineData("compiled", "Library0.dll cannot be woven, because it was compiled to native code (ReadyToRun), which weaving would contradict. --strip removes native code")]
    [InlineData("damaged", "app.dll cannot be woven, because it is damaged")]
    [InlineData("mixed", "Library0.dll cannot be woven, because it mixes native and managed code.")]
    [InlineData("link", "Library0.dll cannot be woven, because it is a symbolic link.")]
    [InlineData("newer", "was woven by ktls 99.0.0, and this one is ")]
    [InlineData("older", "was woven by ktls 0.0.1. Restore it by --undo, and weave it again.")]
    [InlineData("damaged-journal", "journal.json cannot be read: ")]
    [InlineData("other-library", "KernelTls.dll is version 1.0.0, and this ktls weaves for ")]
    [InlineData("self-contained", "has no app.deps.json, so that nothing tells the two apart.")]
    [InlineData("trimmed", "was trimmed, and the library needs System.")]
    public async Task With_a_reason(string what, string reason)
    {
        using SampleFolder folder = new(
            framework: what == "damaged" ? "Microsoft.AspNetCore.App" : "Microsoft.NETCore.App",
            version: what == "old-runtime" ? "8.0.0" : null,
            platform: what == "windows" ? "/win-x64" : "");
        Change(folder, what);
        SortedDictionary<string, string> before = folder.Contents();

        Ktls.Result result = (await folder.WeaveAsync()).AssertExit(ExitCode.No);

        result.AssertErrors(reason);
        result.AssertErrors(" Nothing was changed.\n");
        Assert.Empty(result.Output);
        Assert.Equal(before, folder.Contents());
    }

    [Fact]
    public async Task A_folder_that_runs()
    {
        using SampleFolder folder = new();
        SortedDictionary<string, string> before = folder.Contents();
        using Application sleeper = Application.Start("python3", folder.FullName, [], "-c", """
            import mmap, sys
            with open("Library0.dll", "rb") as file:
                kept = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            print("mapped", flush=True)
            sys.stdin.read()
            import time; time.sleep(600)
            """);
        await sleeper.WaitForAsync("mapped");

        (await folder.WeaveAsync()).AssertExit(ExitCode.No).AssertErrors("Library0.dll). Stop it first. Nothing was changed.");
        Assert.Equal(before, folder.Contents());

        await sleeper.KillAsync();
        (await folder.WeaveAsync()).AssertExit(ExitCode.Ok);
    }

    [Fact]
    public async Task Undo_of_a_folder_that_was_never_woven()
    {
        using SampleFolder folder = new();
        SortedDictionary<string, string> before = folder.Contents();

        (await folder.WeaveAsync("--undo", "--json")).AssertFailure(ExitCode.No, "was not woven by 'ktls weave'");

        Assert.Equal(before, folder.Contents());
    }

    [Fact]
    public async Task A_name_that_no_assembly_has_lists_those_that_can_be_woven()
    {
        using SampleFolder folder = new();

        (await folder.WeaveAsync("--include", "Library", "--json"))
            .AssertFailure(ExitCode.WrongUsage, "Those with something to weave are Library0, Library1.");
    }

    [Fact]
    public async Task Nothing_to_weave_is_said_and_no_success()
    {
        using SampleFolder folder = new(libraries: 0);
        SortedDictionary<string, string> before = folder.Contents();

        Assert.Contains("There is nothing to weave", (await folder.WeaveAsync()).AssertExit(ExitCode.No).Output, StringComparison.Ordinal);

        Assert.Equal(before, folder.Contents());
    }

    private static void Change(SampleFolder folder, string what)
    {
        string runtime = Path.GetDirectoryName(typeof(object).Assembly.Location)!;
        switch (what)
        {
            case "no-configuration" or "single-file" or "native":
                File.Delete(folder.Path("app.runtimeconfig.json"));
                byte[] mark = Convert.FromHexString("8B1202B96A612038727B930214D7A03213F5B9E6EFAE3318EE3B2DCE24B36AAE");
                File.WriteAllBytes(folder.Path("app"), what == "single-file"
                    ? [0x7F, .. "ELF"u8, 1, 2, 3, 4, 0, 0, 0, 0, .. mark]
                    : [0x7F, .. "ELF"u8, 0, 0, 0, 0, 0, 0, 0, 0, .. mark, .. Encoding.ASCII.GetBytes(what == "native" ? "DotNetRuntimeDebugHeader" : "")]);
                break;
            case "no-entry":
                File.Delete(folder.Program);
                break;
            case "no-target":
                folder.Write("app.deps.json", """{ "runtimeTarget": { "name": "other" }, "targets": {}, "libraries": {} }""");
                break;
            case "damaged-configuration":
                folder.Write("app.runtimeconfig.json", "{ }");
                break;
            case "compiled":
                File.Copy(Path.Combine(runtime, "System.Net.Http.dll"), folder.Path("Library0.dll"), overwrite: true);
                break;
            case "damaged":
                folder.Write("app.dll", "damaged");
                break;
            case "mixed":
                byte[] library = File.ReadAllBytes(folder.Path("Library0.dll"));
                using (System.Reflection.PortableExecutable.PEReader pe = new(new MemoryStream([.. library])))
                {
                    library[pe.PEHeaders.CorHeaderStartOffset + 16] &= 0xFE; // not IL alone
                }

                File.WriteAllBytes(folder.Path("Library0.dll"), library);
                break;
            case "link":
                Directory.CreateDirectory(folder.Path("elsewhere"));
                File.Move(folder.Path("Library0.dll"), folder.Path("elsewhere/Library0.dll"));
                File.CreateSymbolicLink(folder.Path("Library0.dll"), "elsewhere/Library0.dll");
                break;
            case "newer":
                folder.Write(".kerneltls/journal.json", """{ "version": "99.0.0.0", "state": "Woven", "files": [] }""");
                break;
            case "older":
                folder.Write(".kerneltls/journal.json", """{ "version": "0.0.1.0", "state": "Woven", "files": [] }""");
                break;
            case "damaged-journal":
                folder.Write(".kerneltls/journal.json", "damaged");
                break;
            case "other-library":
                File.Copy(folder.Path("Library0.dll"), folder.Path("KernelTls.dll"));
                break;
            case "self-contained" or "trimmed":
                folder.Write("app.runtimeconfig.json", string.Create(CultureInfo.InvariantCulture, $$"""
                    { "runtimeOptions": { "includedFrameworks": [ { "name": "Microsoft.NETCore.App", "version": "{{Environment.Version}}" } ] } }
                    """));
                if (what == "self-contained")
                {
                    File.Delete(folder.Path("app.deps.json"));
                }

                break;
        }
    }
}
