using System.CommandLine;
using KernelTls.Fuzz;

const int WrongUsage = 2;

ParseResult arguments = FuzzCommand.Create().Parse(args);
int exitCode = await arguments.InvokeAsync();
return arguments.Errors.Count > 0 ? WrongUsage : exitCode;
