using System.Diagnostics;
using System.Text;
using System.Text.RegularExpressions;

namespace KernelTls.Tests;

/// <summary>
/// Runs an application in a separate process, as a user starts it: only with the given toggles, with a limit on every
/// wait, and ended by its own process id.
/// </summary>
internal sealed partial class Application : IDisposable
{
    public const string KernelVariable = "DOTNET_SYSTEM_NET_SECURITY_KTLS";
    public const string DirectVariable = "DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL";

    private readonly Process _process;
    private readonly string _name;
    private readonly StringBuilder _said = new();

    private Application(Process process)
    {
        _process = process;
        _name = string.Join(' ', process.StartInfo.ArgumentList.Prepend(process.StartInfo.FileName).Take(3));
    }

    /// <summary>Gets the standard output read so far.</summary>
    public string Said => _said.ToString();

    /// <summary>Gets the identifier of the process.</summary>
    public int ProcessId => _process.Id;

    public static Application Start(
        string program, string workingDirectory, IEnumerable<(string Name, string Value)> environment, params string[] arguments)
    {
        ProcessStartInfo start = new(program, arguments) { RedirectStandardOutput = true, WorkingDirectory = workingDirectory };
        start.Environment.Remove(KernelVariable);
        start.Environment.Remove(DirectVariable);
        foreach ((string name, string value) in environment)
        {
            start.Environment[name] = value;
        }

        return new Application(Process.Start(start)!);
    }

    /// <summary>Starts a project of this solution.</summary>
    public static Application StartProject(string project, params string[] arguments) =>
        Start("dotnet", "", [], [PathOf(project), .. arguments]);

    /// <summary>Returns the path of the built program of a project of this solution.</summary>
    public static string PathOf(string project)
    {
        string path = Path.GetFullPath(Path.Combine(AppContext.BaseDirectory, "..", "..", project, "release", $"{project}.dll"));
        Assert.True(File.Exists(path), path);
        return path;
    }

    /// <summary>Waits until Kestrel reports its https address.</summary>
    public async Task<Uri> AddressAsync()
    {
        while (await ReadLineAsync($"the address of {_name}") is { } line)
        {
            if (Address().Match(line) is { Success: true } match)
            {
                return new Uri(match.Groups[1].Value);
            }
        }

        throw new InvalidOperationException($"{_name} ended: {Said}");
    }

    /// <summary>Waits until the application writes a line that contains this text.</summary>
    /// <param name="text">The text.</param>
    /// <param name="limit">The limit for a line, if the usual one is too short.</param>
    public async Task WaitForAsync(string text, TimeSpan? limit = null)
    {
        while (!Said.Contains(text, StringComparison.Ordinal))
        {
            _ = await ReadLineAsync($"'{text}' of {_name}", limit) ?? throw new InvalidOperationException($"{_name} ended before '{text}': {Said}");
        }
    }

    /// <summary>Returns whether a native library of this name is mapped into the process.</summary>
    public bool HasLoaded(string library) =>
        File.ReadLines($"/proc/{_process.Id}/maps").Any(l => l.EndsWith($"/{library}", StringComparison.Ordinal));

    /// <summary>Waits until the process exits, and returns its exit code.</summary>
    /// <param name="limit">The limit, if the usual one is too short.</param>
    public async Task<int> ExitAsync(TimeSpan? limit = null)
    {
        string rest = await _process.StandardOutput.ReadToEndAsync().Within(limit ?? Limits.Wait, $"{_name} to end");
        _said.Append(rest);
        await _process.WaitForExitAsync().InTime($"{_name} to end");
        return _process.ExitCode;
    }

    /// <summary>Waits until the process exits successfully, and returns its output.</summary>
    /// <param name="limit">The limit, if the usual one is too short.</param>
    public async Task<string> SucceedAsync(TimeSpan? limit = null)
    {
        int code = await ExitAsync(limit);
        Assert.True(code == 0, $"{_name} ended with {code}: {Said}");
        return Said;
    }

    /// <summary>Kills the process and returns its output.</summary>
    public async Task<string> KillAsync()
    {
        _process.Kill();
        await ExitAsync();
        return Said;
    }

    public void Dispose()
    {
        if (!_process.HasExited)
        {
            _process.Kill(entireProcessTree: true);
        }

        _process.Dispose();
    }

    private async Task<string?> ReadLineAsync(string what, TimeSpan? limit = null)
    {
        string? line = await _process.StandardOutput.ReadLineAsync().Within(limit ?? Limits.Wait, $"{what}; it says: {Said}");
        _said.AppendLine(line);
        return line;
    }

    [GeneratedRegex(@"listening on: (https://\S+)")]
    private static partial Regex Address();
}
