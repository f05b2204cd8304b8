using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents Redis, which requires a client certificate.</summary>
public sealed class RedisServer() : Server("redis-server")
{
    private protected override async Task<ExternalProgram> LaunchAsync()
    {
        ExternalProgram server = ExternalProgram.Start(
            Program,
            Files,
            "--port", "0", "--tls-port", $"{Port}", "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--appendfsync", "no",
            "--tls-cert-file", Certificate, "--tls-key-file", Key, "--tls-ca-cert-file", Authority, "--tls-auth-clients", "yes",
            "--enable-debug-command", "local");
        await server.OutputUpToAsync("Ready to accept connections");
        return server;
    }
}
