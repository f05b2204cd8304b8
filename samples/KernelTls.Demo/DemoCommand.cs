using System.CommandLine;
using System.Security.Authentication;

namespace KernelTls.Demo;

/// <summary>Parses the command line, and turns outcomes into the last line and the exit code.</summary>
internal static class DemoCommand
{
    private const int Ok = 0;
    private const int Failed = 1;
    private const int Interrupted = 130;

    public static RootCommand Create()
    {
        Option<string?> file = new("--file")
        {
            Description = "The file to download; default: System.Private.CoreLib.dll of the running .NET.",
            HelpName = "PATH",
        };
        RootCommand command = new(
            "Serves a file over HTTPS on kernel TLS, downloads it by HttpClient, curl and openssl s_client, and checks what the kernel says.")
        {
            file,
        };
        command.SetAction((arguments, cancellationToken) =>
            RunAsync(arguments.GetValue(file) ?? typeof(object).Assembly.Location, cancellationToken));
        return command;
    }

    private static async Task<int> RunAsync(string path, CancellationToken cancellationToken)
    {
        try
        {
            using PublishedFile file = await PublishedFile.OpenAsync(path, cancellationToken);
            string outcome = await new Demonstration(file, Console.Out).RunAsync(cancellationToken);
            Console.Out.WriteLine($"demo ok: {outcome}");
            return Ok;
        }
        catch (OperationCanceledException) when (cancellationToken.IsCancellationRequested)
        {
            Console.Out.WriteLine("demo failed: interrupted");
            return Interrupted;
        }
        catch (Exception e) when (e is DemoFailedException or HttpRequestException or AuthenticationException or IOException)
        {
            Console.Out.WriteLine($"demo failed: {Describe(e)}");
            return Failed;
        }
    }

    private static string Describe(Exception e) =>
        e.InnerException is { } inner ? $"{e.Message} ({Describe(inner)})" : e.Message;
}
