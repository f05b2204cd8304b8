using System.Globalization;

namespace KernelTls.Tests;

/// <summary>Describes the commands that prepare and start the distribution's PostgreSQL with TLS, whatever its version is.</summary>
/// <param name="Directory">The server's directory. The preparation gives it to PostgreSQL's user, because the server refuses to run as root.</param>
/// <param name="Port">The port on 127.0.0.1.</param>
/// <param name="Certificate">The path of the server's certificate.</param>
/// <param name="Key">The path of its key.</param>
/// <param name="Authority">The path of the authority that signs clients' certificates.</param>
internal sealed record PostgresProgram(string Directory, int Port, string Certificate, string Key, string Authority)
{
    /// <summary>The user who owns the databases.</summary>
    public const string Owner = "owner";

    public const string Password = "correct horse";

    /// <summary>The text that the server writes to its standard error when it listens.</summary>
    public const string Listening = "database system is ready to accept connections";

    /// <summary>The signal of a fast shutdown, SIGINT. After SIGTERM the server waits for its clients.</summary>
    public const int EndSignal = 2;

    private static readonly string? s_programs = System.IO.Directory.Exists("/usr/lib/postgresql")
        ? System.IO.Directory.GetDirectories("/usr/lib/postgresql").Order().LastOrDefault()
        : null;

    private static readonly string[] s_asPostgres = ["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"];

    /// <summary>Gets the path of the server's program, which does not exist if PostgreSQL is not installed.</summary>
    public static string Program { get; } = $"{s_programs ?? "postgresql"}/bin/postgres";

    /// <summary>Gets the major version, or zero if PostgreSQL is not installed.</summary>
    public static int Version { get; } = int.Parse(Path.GetFileName(s_programs) ?? "0", CultureInfo.InvariantCulture);

    private string Data => Path.Combine(Directory, "data");

    private string PasswordFile => Path.Combine(Directory, "password");

    /// <summary>Writes the files that the preparation reads, and returns its commands, each with its program first.</summary>
    public string[][] Prepare()
    {
        File.WriteAllText(PasswordFile, Password);
        return
        [
            ["chmod", "600", Key],
            ["chown", "-R", "postgres:postgres", Directory],
            [
                "setpriv", .. s_asPostgres, $"{s_programs}/bin/initdb", "-D", Data, "-U", Owner, "--auth=scram-sha-256", $"--pwfile={PasswordFile}",
                "--no-sync",
            ],
        ];
    }

    /// <summary>Replaces the rules of access. Call this method after the preparation.</summary>
    public void WriteAccess(params string[] rules) => File.WriteAllText(Path.Combine(Data, "pg_hba.conf"), string.Join('\n', rules) + "\n");

    /// <summary>Returns the command that runs the server, with its program first.</summary>
    public string[] Launch() =>
    [
        "setpriv", .. s_asPostgres, Program, "-D", Data, "-p", $"{Port}", "-F",
        "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "ssl=on",
        "-c", $"ssl_cert_file={Certificate}", "-c", $"ssl_key_file={Key}", "-c", $"ssl_ca_file={Authority}",
    ];
}
