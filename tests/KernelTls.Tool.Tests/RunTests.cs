using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Tests that <c>ktls run</c> becomes the command, with the variables of the bundle, or says why not.</summary>
public sealed class RunTests : IDisposable
{
    private const string Hooks = "DOTNET_STARTUP_HOOKS";

    private static readonly string s_bundle = Path.GetFullPath(Path.Combine(Path.GetDirectoryName(Ktls.Path)!, "bundle"));

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task It_sets_the_variables_and_becomes_the_command()
    {
        Ktls.Result result = (await Ktls.RunAsync("run", "--", "sh", "-c", $"echo ${Hooks}; echo ${Ktls.KernelVariable}; echo \"$1\"; exit 42", "sh", "a b")).AssertExit(42);

        Assert.Equal($"{s_bundle}/KernelTls.StartupHook.dll\n1\na b\n", result.Output);
        Assert.Empty(result.Errors);
    }

    /// <summary>.NET ends a process with two hooks of one name, so a bundle that is named already stays.</summary>
    [Theory]
    [InlineData("OTHER/Other.dll", "OTHER/Other.dll:HOOK")]
    [InlineData("HOOK", "HOOK")]
    [InlineData("OTHER/KernelTls.StartupHook.dll", "OTHER/KernelTls.StartupHook.dll")]
    public async Task It_keeps_other_hooks(string before, string after)
    {
        string hook = Path.Combine(s_bundle, "KernelTls.StartupHook.dll");
        string Replace(string text) => text.Replace("HOOK", hook, StringComparison.Ordinal).Replace("OTHER", _directory.FullName, StringComparison.Ordinal);
        File.Copy(hook, _directory["Other.dll"]);
        File.Copy(hook, _directory["KernelTls.StartupHook.dll"]);

        Ktls.Result result = (await Ktls.RunAsync([(Hooks, Replace(before))], "run", "--", "printenv", Hooks)).AssertExit(ExitCode.Ok);

        Assert.Equal(Replace(after), result.Output.TrimEnd());
    }

    [Theory]
    [InlineData("0", "0", "switches kernel TLS off")]
    [InlineData("1", "1", "")]
    [InlineData("", "1", "")]
    public async Task It_keeps_the_operators_switch(string before, string after, string said)
    {
        Ktls.Result result = (await Ktls.RunAsync([(Ktls.KernelVariable, before)], "run", "--", "printenv", Ktls.KernelVariable)).AssertExit(ExitCode.Ok);

        Assert.Equal(after, result.Output.TrimEnd());
        Assert.Equal(said.Length == 0, result.Errors.Length == 0);
        Assert.Contains(said, result.Errors, StringComparison.Ordinal);
    }

    /// <summary>A program inherits which signals are ignored: .NET ignores SIGPIPE, and the command must not.</summary>
    [Fact]
    public async Task The_command_has_the_process_and_the_usual_signals()
    {
        using Ktls tool = Ktls.Start("run", "--", "sh", "-c", "grep SigIgn /proc/self/status; echo $$; exec sleep 60");
        string ignored = (await tool.Output.ReadLineAsync().InTime("the ignored signals"))!;
        string id = (await tool.Output.ReadLineAsync().InTime("the process id"))!;

        Assert.Equal("SigIgn:\t0000000000000000", ignored);
        Assert.Equal($"{tool.Id}", id);
        tool.Signal(15);
        Assert.Equal(128 + 15, (await tool.EndAsync()).ExitCode);
    }

    [Theory]
    [InlineData(ExitCode.CommandNotFound, "'/nowhere/app' is not there", "/nowhere/app")]
    [InlineData(ExitCode.CommandNotFound, "'no-such-command' is not there", "no-such-command")]
    [InlineData(ExitCode.CommandNotStarted, "cannot be started: Permission denied", "/etc/passwd")]
    public async Task A_command_that_cannot_be_started(int code, string said, string command)
    {
        Ktls.Result result = (await Ktls.RunAsync("run", "--", command)).AssertExit(code);

        Assert.Contains(said, result.Errors, StringComparison.Ordinal);
    }

    /// <summary>A hook that is missing would end the process.</summary>
    [Theory]
    [InlineData("KernelTls.StartupHook.dll")]
    [InlineData("KernelTls.dll")]
    [InlineData("KernelTls.AspNetCore.dll")]
    [InlineData("KernelTls.Hosting.dll")]
    [InlineData("runtimes/linux-x64/native/libKernelTls.Native.so")]
    public async Task With_a_bundle_that_lacks_a_file_the_command_runs_without_it(string lacks)
    {
        string bundle = _directory["bundle"];
        (await Ktls.RunAsync("bundle", bundle)).AssertExit(ExitCode.Ok);
        File.Delete(Path.Combine(bundle, lacks));

        Ktls.Result result = (await Ktls.RunAsync("run", "--bundle", bundle, "--", "sh", "-c", $"echo \"[${Hooks}]\"")).AssertExit(ExitCode.Ok);

        Assert.Equal("[]\n", result.Output);
        Assert.Contains($"sh is started on the stock TLS. {bundle}/{lacks} ", result.Errors, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("""{ "configProperties": { "System.StartupHookProvider.IsSupported": false } }""", "System.StartupHookProvider.IsSupported: false")]
    [InlineData("""{ "framework": { "name": "Microsoft.NETCore.App", "version": "8.0.0" } }""", "is for .NET 8, and kernel TLS needs .NET 10")]
    [InlineData("""{ "rollForward": "LatestMajor", "framework": { "name": "Microsoft.NETCore.App", "version": "8.0.0" } }""", "")]
    [InlineData("""{ "framework": { "name": "Microsoft.NETCore.App", "version": "10.0.0" } }""", "")]
    [InlineData("""{ "includedFrameworks": [ { "name": "Microsoft.NETCore.App", "version": "10.0.0" } ] }""", "")]
    public async Task It_says_which_application_is_not_reached(string options, string said)
    {
        // A "dotnet" that ends at once: only the files are of interest.
        string dotnet = _directory["dotnet"];
        File.WriteAllText(dotnet, "#!/bin/sh\nexit 0\n");
        (await Ktls.RunAsync("run", "--", "chmod", "u+x", dotnet)).AssertExit(ExitCode.Ok);
        File.WriteAllText(_directory["app.dll"], "");
        File.WriteAllText(_directory["app.runtimeconfig.json"], $"{{ \"runtimeOptions\": {options} }}");

        Ktls.Result result = (await Ktls.RunAsync([("DOTNET_ROLL_FORWARD", "")], "run", "--", dotnet, _directory["app.dll"], "--urls", "x")).AssertExit(ExitCode.Ok);

        Assert.Equal(said.Length == 0, result.Errors.Length == 0);
        Assert.Contains(said, result.Errors, StringComparison.Ordinal);
    }

    [Fact]
    public async Task The_bundle_is_complete_or_not_there()
    {
        string bundle = _directory["a/bundle"];
        Ktls.Result written = (await Ktls.RunAsync("bundle", bundle)).AssertExit(ExitCode.Ok);

        Assert.Equal($"{Hooks}={bundle}/KernelTls.StartupHook.dll\n{Ktls.KernelVariable}=1\n", written.Output);
        Assert.Equal(Files(s_bundle), Files(bundle));
        Assert.Contains("has files", (await Ktls.RunAsync("bundle", bundle)).AssertExit(ExitCode.Failed).Errors, StringComparison.Ordinal);
        Assert.Contains("cannot be copied", (await Ktls.RunAsync("bundle", "/proc/bundle")).AssertExit(ExitCode.Failed).Errors, StringComparison.Ordinal);
    }

    private static string[] Files(string directory) =>
        [.. Directory.GetFiles(directory, "*", SearchOption.AllDirectories).Select(f => Path.GetRelativePath(directory, f)).Order(StringComparer.Ordinal)];
}
