using System.CommandLine;
using System.CommandLine.Invocation;
using KernelTls.Tool.Commands;
using KernelTls.Tool.Output;
using KernelTls.Tool.Peers;

namespace KernelTls.Tool;

/// <summary>Defines the command line. All failures become messages and exit codes here.</summary>
internal static class ToolCommand
{
    /// <summary>Gets the time that an interrupted command has to end cleanly.</summary>
    public static TimeSpan EndingTime { get; } = TimeSpan.FromSeconds(10);

    private static Option<bool> Json { get; } = new("--json")
    {
        Description = "Write JSON to standard output instead of text (connect: to standard error, one object a line).",
        Recursive = true,
    };

    /// <summary>Runs the command line and returns the exit code.</summary>
    public static async Task<int> RunAsync(string[] args)
    {
        string command = "";
        Terminal? terminal = null;
        try
        {
            StandardOutput.Redirect();
            ParseResult arguments = Create().Parse(args);
            command = arguments.CommandResult.Command is RootCommand ? "" : arguments.CommandResult.Command.Name;
            terminal = new Terminal(arguments.Tokens.Any(t => t.Value == Json.Name));
            return arguments.Action is ParseErrorAction
                ? throw WrongUsage(arguments, command)
                : await arguments.InvokeAsync(
                    new InvocationConfiguration { ProcessTerminationTimeout = EndingTime, EnableDefaultExceptionHandler = false });
        }
        catch (ToolFailedException e)
        {
            return Fail(terminal, command, e);
        }
        catch (Exception e)
        {
            return Fail(terminal, command, new ToolFailedException(
                ExitCode.Failed, $"unexpected {e.GetType().Name} in {e.TargetSite?.DeclaringType}.{e.TargetSite?.Name}: {PeerSettings.Describe(e)} This is a fault of ktls: please report it.", e));
        }
    }

    public static RootCommand Create() => new($"""
        Kernel TLS for .NET: whether it is on, why not, and what it does.

        {ExitCode.Explanation}
        """)
    {
        Json,
        InfoCommand.Create(),
        ProbeCommand.Create(),
        ConnectCommand.Create(),
        ServeCommand.Create(),
        TopCommand.Create(),
        BenchCommand.Create(),
        RunCommand.Create(),
        BundleCommand.Create(),
        WeaveCommand.Create(),
    };

    /// <summary>
    /// Sets the action of a command. Failures become messages on standard error (and JSON) and exit codes in <see cref="RunAsync"/>.
    /// </summary>
    /// <param name="command">The command.</param>
    /// <param name="work">
    /// The action, which returns the exit code and may throw <see cref="ToolFailedException"/>.
    /// </param>
    /// <param name="interrupted">The exit code for a canceled token.</param>
    public static void SetWork(
        this Command command, Func<ParseResult, Terminal, CancellationToken, Task<int>> work, int interrupted = ExitCode.Interrupted) =>
        command.SetAction(async (arguments, cancellationToken) =>
        {
            // The caller handles signals only once it has this task.
            await Task.Yield();
            Terminal terminal = new(arguments.GetValue(Json));
            try
            {
                return await work(arguments, terminal, cancellationToken);
            }
            catch (OperationCanceledException) when (cancellationToken.IsCancellationRequested)
            {
                return interrupted;
            }
        });

    /// <summary>Returns the first error of the arguments, and where to read what is expected.</summary>
    private static ToolFailedException WrongUsage(ParseResult arguments, string command)
    {
        string error = arguments.Errors[0].Message;
        if (command.Length == 0)
        {
            string expected = $"expected one of the commands {string.Join(", ", Create().Subcommands.Select(c => c.Name))}.";
            error = arguments.UnmatchedTokens is [{ } unknown, ..] ? $"'{unknown}': {expected}" : char.ToUpperInvariant(expected[0]) + expected[1..];
        }

        string words = string.Join(' ', error.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries));
        return new ToolFailedException(ExitCode.WrongUsage, $"{words} See '{$"ktls {command}".TrimEnd()} --help'.");
    }

    private static int Fail(Terminal? terminal, string command, ToolFailedException failure)
    {
        (terminal ?? new Terminal(json: false)).Fail(command, failure);
        return failure.ExitCode;
    }
}
