using System.CommandLine;
using KernelTls.Tool.Commands;
using KernelTls.Tool.Output;

namespace KernelTls.Tool;

/// <summary>The command line: every subcommand, and the one place that turns failures into messages and exit codes.</summary>
internal static class ToolCommand
{
    /// <summary>How long a command that is interrupted may take to end in good order.</summary>
    public static TimeSpan EndingTime { get; } = TimeSpan.FromSeconds(10);

    private static Option<bool> Json { get; } = new("--json")
    {
        Description = "Write JSON to standard output instead of text (connect: to standard error, one object a line).",
        Recursive = true,
    };

    public static RootCommand Create() => new($"""
        Kernel TLS for .NET: is it on, why not, and what does it do.

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

    /// <summary>Gives a command its work, whose failures end as a message on standard error (and as JSON) and an exit code.</summary>
    /// <param name="command">The command.</param>
    /// <param name="work">Returns the exit code; may throw <see cref="ToolFailedException"/>.</param>
    /// <param name="interrupted">The exit code for a cancelled token.</param>
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
