using System.CommandLine;
using KernelTls.Demo;

const int WrongUsage = 2;

ParseResult arguments = DemoCommand.Create().Parse(args);
int exitCode = await arguments.InvokeAsync();
return arguments.Errors.Count > 0 ? WrongUsage : exitCode;
