namespace KernelTls.Tests;

/// <summary>Describes the command that starts the distribution's Redis with TLS.</summary>
internal static class RedisProgram
{
    public const string Program = "redis-server";

    /// <summary>The text that the server writes to its standard output when it listens.</summary>
    public const string Listening = "Ready to accept connections";

    /// <summary>Returns the arguments for a server that listens only with TLS, and only on 127.0.0.1.</summary>
    /// <param name="port">The port.</param>
    /// <param name="certificate">The path of the server's certificate.</param>
    /// <param name="key">The path of its key.</param>
    /// <param name="authority">The path of the authority that signs clients' certificates.</param>
    public static string[] Arguments(int port, string certificate, string key, string authority) =>
    [
        "--port", "0", "--tls-port", $"{port}", "--bind", "127.0.0.1", "--save", "",
        "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", authority,
    ];
}
