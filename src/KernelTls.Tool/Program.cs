using KernelTls.Tool;

NativeShim.Register();
return await ToolCommand.RunAsync(args);
