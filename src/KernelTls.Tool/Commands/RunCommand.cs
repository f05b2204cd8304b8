using System.CommandLine;
using KernelTls.Offload;
using KernelTls.Tool.Output;
using KernelTls.Tool.Running;

namespace KernelTls.Tool.Commands;

/// <summary>Implements <c>ktls run -- COMMAND…</c>, which starts an application with kernel TLS that was built without it.</summary>
internal static class RunCommand
{
    private const string HooksVariable = "DOTNET_STARTUP_HOOKS";

    public static Command Create()
    {
        Argument<string[]> words = new("COMMAND")
        {
            Description = "The command, after --, with its arguments.",
            Arity = ArgumentArity.OneOrMore,
        };
        Option<string?> bundle = BundleCommand.Folder();
        Command command = new(
            "run",
            "Runs a command with kernel TLS for the .NET applications that it starts, by variables and a start-up hook: Kestrel's https endpoints and the clients of IHttpClientFactory. It replaces ktls, so that signals and the exit code are the command's.")
        {
            words, bundle,
        };
        command.SetWork((arguments, terminal, _) =>
        {
            string[] line = arguments.GetValue(words)!;
            string program = ReplacedProcess.Find(line[0])
                ?? throw new ToolFailedException(ExitCode.CommandNotFound, $"'{line[0]}' is not there: expected a program.");
            ReplacedProcess.Start(program, line, Prepare(new Bundle(arguments.GetValue(bundle)), program, line[1..], terminal));
            return Task.FromResult(ExitCode.Ok);
        });
        return command;
    }

    /// <summary>Returns the variables for the command. Where it cannot be reached, there are none, and the reason is written.</summary>
    private static Dictionary<string, string> Prepare(Bundle bundle, string program, string[] arguments, Terminal terminal)
    {
        if (bundle.FindFault() is { } fault)
        {
            terminal.ErrorLine($"ktls: {Path.GetFileName(program)} is started on the stock TLS. {fault}");
            return [];
        }

        if (TargetProgram.FindObstacle(program, arguments) is { } obstacle)
        {
            terminal.ErrorLine($"ktls: kernel TLS does not reach {Path.GetFileName(program)}, which is started on the stock TLS. {obstacle}");
        }

        Dictionary<string, string> variables = new() { [HooksVariable] = Append(Environment.GetEnvironmentVariable(HooksVariable), bundle.Hook) };
        string? toggle = Environment.GetEnvironmentVariable(Toggles.KernelVariable);
        if (string.IsNullOrEmpty(toggle))
        {
            variables[Toggles.KernelVariable] = "1";
        }
        else if (Toggles.Kernel == Toggle.Off)
        {
            terminal.ErrorLine($"ktls: {Toggles.KernelVariable}={toggle} switches kernel TLS off. {Path.GetFileName(program)} is started on the stock TLS.");
        }

        return variables;
    }

    /// <summary>Adds the hook behind others. A second one of this name would end the process, so one that is there stays.</summary>
    private static string Append(string? hooks, string hook) =>
        string.IsNullOrEmpty(hooks) ? hook
        : hooks.Split(':').Any(h => Path.GetFileName(h) == Bundle.HookName) ? hooks
        : $"{hooks}:{hook}";
}
