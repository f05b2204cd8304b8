using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents RabbitMQ, which requires a client certificate.</summary>
public sealed class RabbitServer() : Server(s_program)
{
    private const string Installed = "/usr/lib/rabbitmq/lib";

    // The script on the path would require a certain user.
    private static readonly string s_program =
        Directory.Exists(Installed) ? $"{Directory.GetDirectories(Installed).Single()}/sbin/rabbitmq-server" : "rabbitmq-server";

    // A second port, for the nodes of a cluster.
    private readonly ReservedPort _distribution = new();

    protected override int EndSignal => SigKill;

    public override async ValueTask DisposeAsync()
    {
        await base.DisposeAsync();
        _distribution.Dispose();
    }

    private protected override async Task<ExternalProgram> LaunchAsync()
    {
        File.WriteAllText(Path.Combine(Files, "enabled_plugins"), "[].\n");
        File.WriteAllText(Path.Combine(Files, "rabbitmq.conf"), $"""
            listeners.tcp = none
            listeners.ssl.1 = 127.0.0.1:{Port}
            ssl_options.cacertfile = {Authority}
            ssl_options.certfile = {Certificate}
            ssl_options.keyfile = {Key}
            ssl_options.verify = verify_peer
            ssl_options.fail_if_no_peer_cert = true
            log.console = true
            log.console.level = info

            """);
        ExternalProgram server = ExternalProgram.Start(
            "unshare",
            Files,
            [
                .. WithItsProcesses, "env",
                $"HOME={Files}", "RABBITMQ_NODENAME=test@localhost", $"RABBITMQ_CONFIG_FILE={Files}/rabbitmq.conf",
                "RABBITMQ_CONF_ENV_FILE=/dev/null", $"RABBITMQ_ADVANCED_CONFIG_FILE={Files}/none", $"RABBITMQ_MNESIA_BASE={Files}/data",
                $"RABBITMQ_LOG_BASE={Files}", "RABBITMQ_LOGS=-", $"RABBITMQ_ENABLED_PLUGINS_FILE={Files}/enabled_plugins",
                $"RABBITMQ_DIST_PORT={_distribution}", Program,
            ]);
        await server.OutputUpToAsync("Server startup complete");
        return server;
    }
}
