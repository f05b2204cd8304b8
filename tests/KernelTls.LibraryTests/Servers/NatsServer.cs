using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents NATS, which requires a client certificate.</summary>
public sealed class NatsServer() : Server("nats-server")
{
    /// <summary>Gets whether a client may begin with TLS. Before 2.10 the server always speaks first.</summary>
    public bool AllowsHandshakeFirst { get; private set; }

    protected override async Task PrepareAsync()
    {
        string version = (await RunAsync(Program, "--version")).Split('v')[^1];
        AllowsHandshakeFirst = Version.Parse(version) >= new Version(2, 10);
        File.WriteAllText(Configuration, $$"""
            listen: "127.0.0.1:{{Port}}"
            max_payload: 8MB
            tls {
              cert_file: "{{Certificate}}"
              key_file: "{{Key}}"
              ca_file: "{{Authority}}"
              verify: true
              {{(AllowsHandshakeFirst ? "handshake_first: auto" : "")}}
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
