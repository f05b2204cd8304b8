using System.CommandLine;
using KernelTls.Soak;

const int WrongUsage = 2;

ParseResult arguments = SoakCommand.Create().Parse(args);
int exitCode = await arguments.InvokeAsync();
return arguments.Errors.Count > 0 ? WrongUsage : exitCode;
