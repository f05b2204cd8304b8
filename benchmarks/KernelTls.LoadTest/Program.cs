using System.CommandLine;
using KernelTls.LoadTest;

return await LoadTestCommand.RunAsync(args);
