using System.CommandLine;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.LoadTest.Generators;
using KernelTls.LoadTest.Http;
using KernelTls.LoadTest.Rehearsal;
using KernelTls.LoadTest.Streams;

namespace KernelTls.LoadTest;

/// <summary>Defines the command line. Only this class maps outcomes to exit codes.</summary>
internal static class LoadTestCommand
{
    private const int Ok = 0;
    private const int Failed = 1;
    private const int WrongUsage = 2;
    private const int Interrupted = 130;

    /// <summary>
    /// The limit within which a server has to report its results and close its connections, on a machine that may be
    /// slow.
    /// </summary>
    private static readonly TimeSpan s_timeToEnd = TimeSpan.FromSeconds(60);

    public static RootCommand Create() => new(
        "Servers and clients to measure TLS with. Without more they are the stock .NET; DOTNET_SYSTEM_NET_SECURITY_KTLS=1, "
        + "DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL=1 and KtlsOptions__NAME=VALUE, one for each property of KtlsOptions, make "
        + "them this library's. Every run says what its connections really had.")
    {
        HttpServerOptions.CreateCommand(),
        HttpClientOptions.CreateCommand(),
        GeneratorOptions.CreateCommand(),
        StreamServerOptions.CreateCommand(),
        StreamClientOptions.CreateCommand(),
        RehearsalOptions.CreateCommand(),
    };

    public static async Task<int> RunAsync(string[] args)
    {
        ParseResult arguments = Create().Parse(args);
        int exitCode = await arguments.InvokeAsync(new InvocationConfiguration { ProcessTerminationTimeout = s_timeToEnd });
        return arguments.Errors.Count > 0 ? WrongUsage : exitCode;
    }

    /// <summary>
    /// Sets the action of a command. A signal ends a server successfully, but it interrupts a measurement.
    /// </summary>
    public static void SetAction(this Command command, bool isServer, Func<ParseResult, CancellationToken, Task> run) =>
        command.SetAction(async (arguments, cancellationToken) =>
        {
            try
            {
                await run(arguments, cancellationToken);
                return Ok;
            }
            catch (OperationCanceledException) when (cancellationToken.IsCancellationRequested)
            {
                return isServer ? Ok : Interrupted;
            }
            catch (Exception e) when (
                e is LoadTestFailedException or AuthenticationException or IOException or SocketException or HttpRequestException
                or KtlsNotAvailableException)
            {
                await Console.Error.WriteLineAsync($"load test failed: {Describe(e)}");
                return Failed;
            }
        });

    public static string Describe(Exception e) =>
        e.InnerException is { } inner ? $"{e.Message} ({Describe(inner)})" : e.Message;
}
