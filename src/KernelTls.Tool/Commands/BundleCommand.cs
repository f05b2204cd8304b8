using System.CommandLine;
using KernelTls.Tool.Running;

namespace KernelTls.Tool.Commands;

/// <summary>Implements <c>ktls bundle DIR</c>, which copies the bundle to where applications can use it without the tool.</summary>
internal static class BundleCommand
{
    public static Command Create()
    {
        Argument<string> directory = new("DIR") { Description = "The folder to create. It must not exist, or be empty." };
        Command command = new(
            "bundle",
            "Writes the start-up hook, the libraries and the shims of all platforms to a folder, for applications that are already built: docs/no-rebuild.md has recipes.")
        {
            directory,
        };
        command.SetWork((arguments, terminal, _) =>
        {
            string target = Path.GetFullPath(arguments.GetValue(directory)!);
            new Bundle(null).CopyTo(target);
            string hook = new Bundle(target).Hook;
            if (terminal.IsJson)
            {
                terminal.Document(new { Hook = hook });
            }
            else
            {
                terminal.Line($"DOTNET_STARTUP_HOOKS={hook}");
                terminal.Line("DOTNET_SYSTEM_NET_SECURITY_KTLS=1");
            }

            return Task.FromResult(ExitCode.Ok);
        });
        return command;
    }

    /// <summary>Creates the option that names a bundle.</summary>
    public static Option<string?> Folder() => new("--bundle")
    {
        Description = "The bundle to use, as written by ktls bundle. Default: that of the tool.",
        HelpName = "DIR",
    };
}
