using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Text;
using System.Text.RegularExpressions;

namespace KernelTls.Tests;

/// <summary>
/// Runs a third-party program with its pipes, a limit on every wait, and ended by its own process id.
/// </summary>
internal sealed partial class ExternalProgram : IDisposable
{
    private readonly Process _process;
    private readonly string _name;
    private readonly StringBuilder _errors = new();
    private readonly List<(Func<string, bool> Condition, string What, TaskCompletionSource Seen)> _awaited = [];
    private readonly Task _readingErrors;
    private bool _errorsEnded;

    private ExternalProgram(Process process)
    {
        _process = process;
        _name = Path.GetFileName(process.StartInfo.FileName);
        _readingErrors = ReadErrorsAsync();
    }

    /// <summary>Gets the program's standard input.</summary>
    public Stream Input => _process.StandardInput.BaseStream;

    /// <summary>Gets the program's standard output.</summary>
    public Stream Output => _process.StandardOutput.BaseStream;

    public string Errors
    {
        get
        {
            lock (_errors)
            {
                return _errors.ToString();
            }
        }
    }

    /// <summary>
    /// Starts the program. If it is not installed, the test fails in a lab cell and is skipped elsewhere.
    /// </summary>
    public static ExternalProgram Start(string program, string? workingDirectory, params string[] arguments)
    {
        ProcessStartInfo start = new(Find(program), arguments)
        {
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
            WorkingDirectory = workingDirectory ?? "",
        };
        return new ExternalProgram(Process.Start(start) ?? throw new InvalidOperationException($"{program} did not start."));
    }

    /// <summary>Returns the path of a program. If it is not installed, the test fails in a lab cell and is skipped elsewhere.</summary>
    public static string Find(string program)
    {
        string? path = (Environment.GetEnvironmentVariable("PATH") ?? "").Split(':')
            .Select(d => Path.Combine(d, program)).FirstOrDefault(File.Exists);
        if (path is null)
        {
            Assert.False(Cell.IsLab, $"{program} is missing in the cell.");
            Assert.Skip($"{program} is not installed here.");
        }

        return path!;
    }

    /// <summary>Writes a line to the program.</summary>
    public async Task SayAsync(string line)
    {
        await Input.WriteAsync(Encoding.ASCII.GetBytes(line + "\n"));
        await Input.FlushAsync();
    }

    /// <summary>Waits until the program has written <paramref name="text"/> to its standard error.</summary>
    public Task ErrorsContain(string text) => ErrorsAsync(all => all.Contains(text, StringComparison.Ordinal), text);

    /// <summary>Waits until the program's standard error matches the pattern.</summary>
    public async Task<Match> ErrorsMatch(Regex pattern)
    {
        await ErrorsAsync(pattern.IsMatch, $"{pattern}");
        return pattern.Match(Errors);
    }

    /// <summary>Reads the output up to and including <paramref name="text"/>.</summary>
    /// <param name="text">The text at which to stop.</param>
    /// <param name="limit">The limit for each byte, if the usual one is too short.</param>
    public async Task<string> OutputUpToAsync(string text, TimeSpan? limit = null)
    {
        StringBuilder read = new();
        byte[] one = new byte[1];
        while (!EndsWith(read, text))
        {
            int count = await Output.ReadAsync(one).AsTask().Within(limit ?? Limits.Wait, $"'{text}' after: {read}");
            Assert.True(count == 1, $"The output ended without '{text}': {read}\n{Errors}");
            read.Append((char)one[0]);
        }

        return read.ToString();
    }

    /// <summary>Waits until the program exits successfully, and returns the rest of its output.</summary>
    /// <param name="limit">The limit, if the usual one is too short.</param>
    public async Task<string> SucceedAsync(TimeSpan? limit = null)
    {
        using StreamReader reader = new(Output);
        string output = await reader.ReadToEndAsync().Within(limit ?? Limits.Wait, $"the end of {_name}'s output; it says: {Errors}");
        int code = await ExitAsync();
        Assert.True(code == 0, $"{_name} ended with {code}: {Errors}\n{output}");
        return output;
    }

    public async Task<int> ExitAsync()
    {
        await _process.WaitForExitAsync().InTime($"{_name} to end; it says: {Errors}");
        await _readingErrors.InTime("the program's last words");
        return _process.ExitCode;
    }

    /// <summary>Sends the program a signal, by number.</summary>
    public void Signal(int signal) => Assert.Equal(0, Kill(_process.Id, signal));

    /// <summary>Kills the program if it is running.</summary>
    public void Kill()
    {
        if (!_process.HasExited)
        {
            _process.Kill();
        }
    }

    public void Dispose()
    {
        Kill();
        _process.Dispose();
    }

    [LibraryImport("libc", EntryPoint = "kill")]
    private static partial int Kill(int process, int signal);

    private static bool EndsWith(StringBuilder text, string end) =>
        text.Length >= end.Length && text.ToString(text.Length - end.Length, end.Length) == end;

    private Task ErrorsAsync(Func<string, bool> condition, string what)
    {
        lock (_errors)
        {
            if (condition(_errors.ToString()))
            {
                return Task.CompletedTask;
            }

            TaskCompletionSource seen = new(TaskCreationOptions.RunContinuationsAsynchronously);
            _awaited.Add((condition, what, seen));
            EndWaits();
            return seen.Task.InTime($"'{what}' from {_name}");
        }
    }

    /// <summary>Fails the waits of a program that has exited. The caller must hold the lock.</summary>
    private void EndWaits()
    {
        if (_errorsEnded)
        {
            _awaited.ForEach(a => a.Seen.TrySetException(new InvalidOperationException($"{_name} ended without '{a.What}': {_errors}")));
        }
    }

    private async Task ReadErrorsAsync()
    {
        char[] buffer = new char[1024];
        for (int read; (read = await _process.StandardError.ReadAsync(buffer)) > 0;)
        {
            lock (_errors)
            {
                _errors.Append(buffer, 0, read);
                string all = _errors.ToString();
                _awaited.RemoveAll(a => a.Condition(all) && a.Seen.TrySetResult());
            }
        }

        lock (_errors)
        {
            _errorsEnded = true;
            EndWaits();
        }
    }
}
