using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents NATS, which requires a client certificate.</summary>
public class NatsServer() : Server("nats-server")
{
    /// <summary>
    /// Gets whether the client must begin with TLS. The server speaks first otherwise. Its middle way, to wait 50 ms for the client, is for
    /// no test: a client that needs longer fails, also on SslStream.
    /// </summary>
    public bool IsHandshakeFirst { get; private set; }

    protected virtual bool WantsHandshakeFirst => false;

    protected override async Task PrepareAsync()
    {
        string version = (await RunAsync(Program, "--version")).Split('v')[^1];
        IsHandshakeFirst = WantsHandshakeFirst && Version.Parse(version) >= new Version(2, 10);
        File.WriteAllText(Configuration, $$"""
            listen: "127.0.0.1:{{Port}}"
            max_payload: 8MB
            tls {
              cert_file: "{{Certificate}}"
              key_file: "{{Key}}"
              ca_file: "{{Authority}}"
              verify: true
              {{(IsHandshakeFirst ? "handshake_first: true" : "")}}
            }

            """);
    }

    private protected override async Task<ExternalProgram> LaunchAsync()
    {
        ExternalProgram server = ExternalProgram.Start(Program, Files, "--config", Configuration);
        await server.ErrorsContain("Server is ready");
        return server;
    }

    private string Configuration => Path.Combine(Files, "nats.conf");
}
