using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>Runs curl, which trusts only the test authority and resolves localhost to 127.0.0.1.</summary>
internal static class Curl
{
    /// <summary>Starts curl.</summary>
    /// <param name="port">The server's port.</param>
    /// <param name="directory">The working directory.</param>
    /// <param name="version">The newest TLS version to offer; the oldest is 1.2.</param>
    /// <param name="more">More options, and the URL.</param>
    public static ExternalProgram Start(int port, TemporaryDirectory directory, SslProtocols version, params string[] more) =>
        ExternalProgram.Start(
            "curl",
            directory.FullName,
            ["--silent", "--show-error", "--max-time", $"{Limits.Wait.TotalSeconds}", "--tlsv1.2",
            "--tls-max", version == SslProtocols.Tls12 ? "1.2" : "1.3", "--cacert", Certificates.WriteAuthority(directory.FullName),
            "--resolve", $"localhost:{port}:127.0.0.1", .. more]);

    public static string Address(int port, string path = "/") => $"https://localhost:{port}{path}";
}
