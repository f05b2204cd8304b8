using System.Diagnostics;
using System.Text;
using System.Text.Json.Nodes;
using KernelTls.LoadTest.Report;
using KernelTls.LoadTest.Tls;

namespace KernelTls.LoadTest.Rehearsal;

/// <summary>
/// Runs this program as a child process, collects its output and result, and ends it by its process ID.
/// </summary>
internal sealed class LoadTestProcess : IDisposable
{
    private const string Ready = "Listening on ";

    private readonly Process _process;
    private readonly TaskCompletionSource<string> _address = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly StringBuilder _said = new();
    private readonly Task _reading;

    private LoadTestProcess(Process process)
    {
        _process = process;
        _reading = Task.WhenAll(ReadAsync(process.StandardOutput), ReadAsync(process.StandardError));
    }

    public int Id => _process.Id;

    public string Said
    {
        get
        {
            lock (_said)
            {
                return _said.ToString();
            }
        }
    }

    /// <param name="program">The path of the assembly.</param>
    /// <param name="inNamespace">The network namespace of the process, or null for the current one.</param>
    /// <param name="environment">All environment variables that affect TLS.</param>
    /// <param name="arguments">The arguments of the command line.</param>
    public static LoadTestProcess Start(
        string program, string? inNamespace, IEnumerable<KeyValuePair<string, string>> environment, IEnumerable<string> arguments)
    {
        string[] command = inNamespace is null ? ["dotnet"] : ["ip", "netns", "exec", inNamespace, "dotnet"];
        ProcessStartInfo start = new(command[0], [.. command[1..], program, .. arguments])
        {
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        foreach (string name in start.Environment.Keys.Where(IsAboutTls).ToArray())
        {
            start.Environment.Remove(name);
        }

        foreach ((string name, string value) in environment)
        {
            start.Environment[name] = value;
        }

        return new LoadTestProcess(Process.Start(start)!);
    }

    /// <summary>Waits until a server listens and returns its port.</summary>
    /// <exception cref="LoadTestFailedException">The server ended before it listened.</exception>
    /// <exception cref="TimeoutException">The server does not listen yet.</exception>
    public async Task<int> ListenAsync(TimeSpan limit)
    {
        Task first = await InTime(Task.WhenAny(_address.Task, _reading), limit, "to listen");
        if (first == _reading && !_address.Task.IsCompleted)
        {
            throw new LoadTestFailedException($"a server ended before it listened: {Said}");
        }

        string address = await _address.Task;
        return int.Parse(address[(address.LastIndexOf(':') + 1)..].TrimEnd('/'), System.Globalization.CultureInfo.InvariantCulture);
    }

    /// <summary>Asks the process to end with SIGTERM.</summary>
    public void Terminate()
    {
        using Process kill = Process.Start("kill", ["-TERM", $"{_process.Id}"]);
        kill.WaitForExit();
    }

    /// <summary>Waits until the process has ended successfully and returns its results.</summary>
    /// <exception cref="LoadTestFailedException">The process failed, or it reported no results.</exception>
    /// <exception cref="TimeoutException">The process has not ended.</exception>
    public async Task<JsonObject> ResultsAsync(TimeSpan limit)
    {
        int code = await ExitAsync(limit);
        if (code != 0)
        {
            throw new LoadTestFailedException($"a process ended with {code}: {Said}");
        }

        string said = Said;
        int start = said.IndexOf(Results.Start, StringComparison.Ordinal);
        int end = said.IndexOf(Results.End, StringComparison.Ordinal);
        return start < 0 || end < start
            ? throw new LoadTestFailedException($"a process told no results: {said}")
            : JsonNode.Parse(said[(start + Results.Start.Length)..end])!.AsObject();
    }

    public async Task<int> ExitAsync(TimeSpan limit)
    {
        return await InTime(EndAsync(), limit, "to end");

        async Task<int> EndAsync()
        {
            await _process.WaitForExitAsync();
            await _reading;
            return _process.ExitCode;
        }
    }

    /// <summary>Returns one figure of <see cref="ResultsAsync"/>.</summary>
    public static JsonNode? ValueOf(JsonObject results, Metric metric) =>
        results["Measurements"]!.AsArray().FirstOrDefault(m => (string)m!["Name"]! == metric.Name)?["Value"];

    public void Dispose()
    {
        if (!_process.HasExited)
        {
            _process.Kill(entireProcessTree: true);
        }

        _process.Dispose();
    }

    private static bool IsAboutTls(string name) =>
        name is TlsChoice.KernelVariable or TlsChoice.DirectVariable
        || name.StartsWith(TlsChoice.OptionsPrefix, StringComparison.OrdinalIgnoreCase);

    private async Task<T> InTime<T>(Task<T> task, TimeSpan limit, string what)
    {
        try
        {
            return await task.WaitAsync(limit);
        }
        catch (TimeoutException) when (!task.IsCompleted)
        {
            throw new TimeoutException($"waited {limit.TotalSeconds} s for a process {what}; it says: {Said}");
        }
    }

    private async Task ReadAsync(StreamReader reader)
    {
        while (await reader.ReadLineAsync() is { } line)
        {
            lock (_said)
            {
                _said.AppendLine(line);
            }

            if (line.StartsWith(Ready, StringComparison.Ordinal))
            {
                _address.TrySetResult(line[Ready.Length..]);
            }
        }
    }
}
