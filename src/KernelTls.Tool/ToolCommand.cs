using System.CommandLine;
using KernelTls.Tool.Commands;
using KernelTls.Tool.Output;

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
    };

    /// <summary>
    /// Sets the action of a command. Failures end with a message on standard error (and as JSON) and an exit code.
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
            Terminal terminal = new(arguments.GetValue(Json));
            try
            {
                return await work(arguments, terminal, cancellationToken);
            }
            catch (OperationCanceledException) when (cancellationToken.IsCancellationRequested)
            {
                return interrupted;
            }
            catch (ToolFailedException e)
            {
                terminal.Fail(command.Name, e);
                return e.ExitCode;
            }
        });
}
