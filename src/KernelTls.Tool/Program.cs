using System.CommandLine;
using KernelTls.Tool;

NativeShim.Register();
ParseResult arguments = ToolCommand.Create().Parse(args);
int exitCode = await arguments.InvokeAsync(new InvocationConfiguration { ProcessTerminationTimeout = ToolCommand.EndingTime });
return arguments.Errors.Count > 0 ? ExitCode.WrongUsage : exitCode;
