using System.CommandLine;
using KernelTls.Lab;

return await LabCommand.RunAsync(args);
