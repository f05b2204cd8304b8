using System.Globalization;
using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents PostgreSQL with the users "owner" (a password) and "a client" (a certificate).</summary>
public sealed class PostgresServer() : Server($"{s_programs ?? "postgresql"}/bin/postgres")
{
    public const string Password = "correct horse";

    // The path contains the version.
    private static readonly string? s_programs =
        Directory.Exists("/usr/lib/postgresql") ? Directory.GetDirectories("/usr/lib/postgresql").Order().LastOrDefault() : null;

    public static int Version { get; } = int.Parse(Path.GetFileName(s_programs) ?? "0", CultureInfo.InvariantCulture);

    /// <summary>Gets SIGINT, the "fast shutdown". After SIGTERM the server waits for its clients.</summary>
    protected override int EndSignal => SigInt;

    protected override async Task PrepareAsync()
    {
        string password = Path.Combine(Files, "password");
        File.WriteAllText(password, Password);
        await RunAsync("chmod", "600", Key);
        await RunAsync("chown", "-R", "postgres:postgres", Files);
        await RunAsync(
            "setpriv",
            [.. AsPostgres, $"{s_programs}/bin/initdb", "-D", Data, "-U", "owner", "--auth=scram-sha-256", $"--pwfile={password}", "--no-sync"]);
        File.WriteAllText(Path.Combine(Data, "pg_hba.conf"), """
            hostssl all "a client" 127.0.0.1/32 cert
            hostssl all owner 127.0.0.1/32 scram-sha-256
            """ + "\n");
    }

    private protected override async Task<ExternalProgram> LaunchAsync()
    {
        ExternalProgram server = ExternalProgram.Start(
            "setpriv",
            Files,
            [
                .. AsPostgres, Program, "-D", Data, "-p", $"{Port}", "-F",
                "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "ssl=on",
                "-c", $"ssl_cert_file={Certificate}", "-c", $"ssl_key_file={Key}", "-c", $"ssl_ca_file={Authority}",
            ]);
        await server.ErrorsContain("database system is ready to accept connections");
        return server;
    }

    /// <summary>Gets the arguments for an unprivileged user, because PostgreSQL refuses to run as root.</summary>
    private static string[] AsPostgres => ["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"];

    private string Data => Path.Combine(Files, "data");
}
