using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents PostgreSQL with the users "owner" (a password) and "a client" (a certificate).</summary>
public sealed class PostgresServer() : Server(PostgresProgram.Program)
{
    public const string Password = PostgresProgram.Password;

    public static int Version => PostgresProgram.Version;

    protected override int EndSignal => PostgresProgram.EndSignal;

    private PostgresProgram Commands => new(Files, Port, Certificate, Key, Authority);

    protected override async Task PrepareAsync()
    {
        foreach (string[] command in Commands.Prepare())
        {
            await RunAsync(command[0], command[1..]);
        }

        Commands.WriteAccess("hostssl all \"a client\" 127.0.0.1/32 cert", "hostssl all owner 127.0.0.1/32 scram-sha-256");
    }

    private protected override async Task<ExternalProgram> LaunchAsync()
    {
        string[] command = Commands.Launch();
        ExternalProgram server = ExternalProgram.Start(command[0], Files, command[1..]);
        await server.ErrorsContain(PostgresProgram.Listening);
        return server;
    }
}
