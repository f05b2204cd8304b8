using System.Diagnostics;
using System.Globalization;
using System.Runtime.InteropServices;
using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Runs the built tool in a separate process.</summary>
internal sealed partial class Ktls : IDisposable
{
    public const string KernelVariable = "DOTNET_SYSTEM_NET_SECURITY_KTLS";
    public const int Interrupt = 2;

    private readonly Process _process;

    private Ktls(Process process)
    {
        _process = process;
        Errors = process.StandardError.ReadToEndAsync();
    }

    public static string Path { get; } = System.IO.Path.Combine(
        AppContext.BaseDirectory, "..", "..", "KernelTls.Tool", System.IO.Path.GetFileName(AppContext.BaseDirectory.TrimEnd('/')), "KernelTls.Tool.dll");

    /// <summary>Gets the complete standard error when the tool has exited.</summary>
    public Task<string> Errors { get; }

    public int Id => _process.Id;

    public StreamReader Output => _process.StandardOutput;

    public StreamWriter Input => _process.StandardInput;

    public static Ktls Start(params string[] arguments) => Start([], arguments);

    public static Ktls Start((string Name, string Value)[] environment, string[] arguments)
    {
        ProcessStartInfo start = new("dotnet", [Path, .. arguments])
        {
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        start.Environment.Remove(KernelVariable);
        foreach ((string name, string value) in environment)
        {
            start.Environment[name] = value;
        }

        return new Ktls(Process.Start(start)!);
    }

    /// <summary>Runs the tool to its end, without input.</summary>
    public static async Task<Result> RunAsync(params string[] arguments) => await RunAsync([], arguments);

    public static async Task<Result> RunAsync((string Name, string Value)[] environment, params string[] arguments)
    {
        using Ktls tool = Start(environment, arguments);
        tool.Input.Close();
        return await tool.EndAsync();
    }

    /// <summary>Runs a line of the shell, in which <c>ktls</c> is the tool.</summary>
    public static async Task<Result> ShellAsync((string Name, string Value)[] environment, string line)
    {
        ProcessStartInfo start = new("bash", ["-c", $"ktls() {{ dotnet '{Path}' \"$@\"; }}; {line}"])
        {
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        start.Environment.Remove(KernelVariable);
        foreach ((string name, string value) in environment)
        {
            start.Environment[name] = value;
        }

        using Ktls shell = new(Process.Start(start)!);
        shell.Input.Close();
        return await shell.EndAsync();
    }

    /// <summary>Waits for the end, and returns the unread output.</summary>
    public async Task<Result> EndAsync()
    {
        string output = await Output.ReadToEndAsync().InTime("the tool's output to end");
        await _process.WaitForExitAsync().InTime("the tool to end");
        return new Result(_process.ExitCode, output, await Errors.InTime("the tool's errors to end"));
    }

    /// <summary>Reads a line of standard output. Fails if there is none.</summary>
    public async Task<string> LineAsync()
    {
        string? line = await Output.ReadLineAsync().InTime("a line of the tool");
        Assert.True(line is not null, $"The tool ended: {(line is null ? await Errors : "")}");
        return line!;
    }

    public void Signal(int signal) => Assert.Equal(0, Kill(_process.Id, signal));

    public void Dispose()
    {
        if (!_process.HasExited)
        {
            _process.Kill();
        }

        _process.Dispose();
    }

    [LibraryImport("libc", EntryPoint = "kill", SetLastError = true)]
    private static partial int Kill(int process, int signal);

    internal sealed record Result(int ExitCode, string Output, string Errors)
    {
        /// <summary>Gets standard output as one JSON document.</summary>
        public JsonElement Json
        {
            get
            {
                Assert.True(Output.StartsWith('{'), $"No JSON: {Output} {Errors}");
                return JsonDocument.Parse(Output).RootElement;
            }
        }

        /// <summary>Fails, with all that the tool has written, unless standard error contains the text.</summary>
        public void AssertErrors(string text) =>
            Assert.True(Errors.Contains(text, StringComparison.Ordinal), $"No '{text}' in: {Errors}\nOutput: {Output}");

        /// <summary>
        /// Fails unless the tool, with --json, has ended with this code, and both its only line of errors and its JSON say so.
        /// </summary>
        public Result AssertFailure(int code, string text)
        {
            AssertExit(code).AssertErrors(text);
            string line = Assert.Single(Errors.TrimEnd('\n').Split('\n'));
            JsonElement json = line.StartsWith('{') ? JsonDocument.Parse(line).RootElement : Json;
            Schema.AssertMembers(json, "error", "exitCode");
            Assert.Equal(code, json.GetProperty("exitCode").GetInt32());
            Assert.Contains(text, json.Text("error"), StringComparison.Ordinal);
            Assert.Matches(@"[.)]\z", line.TrimEnd('}', '"').Split("\",\"exitCode")[0]); // a sentence
            Assert.DoesNotMatch("   at |Exception|System[.]|`1", line);
            return this;
        }

        public Result AssertExit(int code)
        {
            Assert.True(ExitCode == code, string.Create(CultureInfo.InvariantCulture, $"Exit code {ExitCode}, not {code}: {Output}\n{Errors}"));
            return this;
        }
    }
}
