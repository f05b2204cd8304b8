using System.CommandLine;
using KernelTls.Bench;

const int WrongUsage = 2;

ParseResult arguments = BenchCommand.Create().Parse(args);
int exitCode = await arguments.InvokeAsync();
return arguments.Errors.Count > 0 ? WrongUsage : exitCode;
