using System.Diagnostics;
using KernelTls.Tests;

namespace KernelTls.Bench.Servers;

/// <summary>Starts the distribution's servers for the clients of libraries, with the certificate of <see cref="ServedFiles"/>.</summary>
internal static class LibraryServers
{
    /// <summary>Starts a new PostgreSQL without data, whose owner has a password.</summary>
    public static async Task<ServerProcess> StartPostgresAsync(ServedFiles files)
    {
        ReservedPort port = new();
        string directory = files.FullName;
        PostgresProgram postgres = new(
            directory,
            port.Number,
            BenchCertificates.PathIn(directory),
            BenchCertificates.KeyPathIn(directory),
            BenchCertificates.AuthorityPathIn(directory));
        foreach (string[] command in postgres.Prepare())
        {
            _ = await BenchProcess.RunAsync(
                new ProcessStartInfo(command[0], command[1..]) { WorkingDirectory = directory },
                string.Join(' ', command),
                Limits.Measurement,
                CancellationToken.None);
        }

        postgres.WriteAccess($"hostssl all {PostgresProgram.Owner} 127.0.0.1/32 scram-sha-256");
        string[] launch = [.. postgres.Launch(), "-c", "log_checkpoints=off"];
        return await ServerProcess.StartAsync(
            port,
            new ProcessStartInfo(launch[0], launch[1..]) { WorkingDirectory = directory },
            PostgresProgram.Listening,
            PostgresProgram.EndSignal);
    }

    /// <summary>Starts a new Redis, which keeps its data in memory and accepts clients without a certificate.</summary>
    public static Task<ServerProcess> StartRedisAsync(ServedFiles files)
    {
        ReservedPort port = new();
        string directory = files.FullName;
        string[] arguments = RedisProgram.Arguments(
            port.Number, BenchCertificates.PathIn(directory), BenchCertificates.KeyPathIn(directory), BenchCertificates.AuthorityPathIn(directory));
        return ServerProcess.StartAsync(
            port,
            new ProcessStartInfo(RedisProgram.Program, [.. arguments, "--tls-auth-clients", "no"]) { WorkingDirectory = directory },
            RedisProgram.Listening);
    }
}
