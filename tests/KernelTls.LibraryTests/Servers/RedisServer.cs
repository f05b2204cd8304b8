using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents Redis, which requires a client certificate.</summary>
public sealed class RedisServer() : Server(RedisProgram.Program)
{
    private protected override async Task<ExternalProgram> LaunchAsync()
    {
        ExternalProgram server = ExternalProgram.Start(
            Program,
            Files,
            [
                .. RedisProgram.Arguments(Port, Certificate, Key, Authority),
                "--appendonly", "yes", "--appendfsync", "no", "--tls-auth-clients", "yes", "--enable-debug-command", "local",
            ]);
        await server.OutputUpToAsync(RedisProgram.Listening);
        return server;
    }
}
