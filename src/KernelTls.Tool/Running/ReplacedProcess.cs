using System.Collections;
using System.Runtime.InteropServices;

namespace KernelTls.Tool.Running;

/// <summary>Replaces this process by a program, which gets its signals and its exit code, as a shell's exec does.</summary>
internal static partial class ReplacedProcess
{
    private const int NoEntry = 2;
    private const int SigPipe = 13;

    /// <summary>Returns the path of a command, which is searched in PATH if it has no slash, or null.</summary>
    public static string? Find(string command)
    {
        if (command.Contains('/', StringComparison.Ordinal))
        {
            return File.Exists(command) ? command : null;
        }

        IEnumerable<string> paths = (Environment.GetEnvironmentVariable("PATH") ?? "").Split(':').Select(folder => Path.Combine(folder, command));
        return paths.FirstOrDefault(path => File.Exists(path) && Access(path, executable: 1) == 0);
    }

    /// <summary>Starts the program in place of this one. Returns only if that fails.</summary>
    /// <param name="program">The path of the program.</param>
    /// <param name="command">The name of the command, and its arguments.</param>
    /// <param name="added">The variables in addition to those of this process.</param>
    /// <exception cref="ToolFailedException">The program cannot be started.</exception>
    public static void Start(string program, IEnumerable<string> command, IReadOnlyDictionary<string, string> added)
    {
        Dictionary<string, string> environment = [];
        foreach (DictionaryEntry variable in Environment.GetEnvironmentVariables())
        {
            environment[(string)variable.Key] = (string?)variable.Value ?? "";
        }

        foreach ((string name, string value) in added)
        {
            environment[name] = value;
        }

        DeleteDiagnosticSocket();

        // .NET ignores it in this process, and a program inherits that.
        _ = Signal(SigPipe, 0);
        _ = Execute(program, [.. command, null], [.. environment.Select(v => $"{v.Key}={v.Value}"), null]);
        int errno = Marshal.GetLastPInvokeError();
        throw new ToolFailedException(
            errno == NoEntry ? ExitCode.CommandNotFound : ExitCode.CommandNotStarted,
            $"'{program}' cannot be started: {Marshal.GetPInvokeErrorMessage(errno)}.");
    }

    /// <summary>
    /// Deletes the socket on which .NET accepts diagnostic tools. A .NET program in this process would need the same name, and without the
    /// socket dotnet-trace or <c>ktls top</c> could not connect.
    /// </summary>
    private static void DeleteDiagnosticSocket()
    {
        try
        {
            foreach (string socket in Directory.GetFiles(Path.GetTempPath(), $"dotnet-diagnostic-{Environment.ProcessId}-*-socket"))
            {
                File.Delete(socket);
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // The program starts without it.
        }
    }

    [LibraryImport("libc", EntryPoint = "execve", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    private static partial int Execute(string path, string?[] arguments, string?[] environment);

    [LibraryImport("libc", EntryPoint = "signal")]
    private static partial nint Signal(int number, nint handler);

    [LibraryImport("libc", EntryPoint = "access", StringMarshalling = StringMarshalling.Utf8)]
    private static partial int Access(string path, int executable);
}
