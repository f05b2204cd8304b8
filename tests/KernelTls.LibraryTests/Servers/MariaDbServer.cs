using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents MariaDB with the users "owner" (a password) and "client" (a password and a certificate).</summary>
public sealed class MariaDbServer() : Server("mariadbd")
{
    public const string Password = "correct horse";

    // Fits into a machine of the lab. By default the server reserves 8 GiB of addresses.
    private const string BufferLimit = "--loose-innodb-buffer-pool-size-max=256M";

    protected override async Task PrepareAsync()
    {
        await RunAsync(
            "mariadb-install-db",
            "--no-defaults", "--user=root", $"--datadir={Data}", "--auth-root-authentication-method=normal", "--skip-test-db",
            "--skip-name-resolve", "--force", BufferLimit);
        File.WriteAllText(Path.Combine(Files, "users.sql"), $"""
            CREATE OR REPLACE USER owner@'127.0.0.1' IDENTIFIED BY '{Password}' REQUIRE SSL;
            GRANT ALL ON *.* TO owner@'127.0.0.1';
            CREATE OR REPLACE USER client@'127.0.0.1' IDENTIFIED BY '{Password}' REQUIRE SUBJECT '/CN=a client';
            CREATE DATABASE IF NOT EXISTS test;

            """);
    }

    private protected override async Task<ExternalProgram> LaunchAsync()
    {
        ExternalProgram server = ExternalProgram.Start(
            Program,
            Files,
            "--no-defaults", "--user=root", $"--datadir={Data}", "--bind-address=127.0.0.1", $"--port={Port}", "--skip-name-resolve",
            $"--socket={Path.Combine(Files, "socket")}", $"--init-file={Path.Combine(Files, "users.sql")}",
            $"--ssl-cert={Certificate}", $"--ssl-key={Key}", $"--ssl-ca={Authority}",
            BufferLimit, "--max-allowed-packet=64M", "--local-infile=1", "--innodb-flush-log-at-trx-commit=0");
        await server.ErrorsContain("ready for connections");
        return server;
    }

    private string Data => Path.Combine(Files, "data");
}
