using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>curl, which trusts the test authority alone and finds localhost at 127.0.0.1.</summary>
internal static class Curl
{
    /// <param name="port">The server's.</param>
    /// <param name="directory">Where it runs.</param>
    /// <param name="version">The newest TLS that it offers; the oldest is 1.2.</param>
    /// <param name="more">More options, and what to fetch.</param>
    public static ExternalProgram Start(int port, TemporaryDirectory directory, SslProtocols version, params string[] more) =>
        ExternalProgram.Start(
            "curl",
            directory.FullName,
            ["--silent", "--show-error", "--max-time", $"{Limits.Wait.TotalSeconds}", "--tlsv1.2",
            "--tls-max", version == SslProtocols.Tls12 ? "1.2" : "1.3", "--cacert", Certificates.WriteAuthority(directory.FullName),
            "--resolve", $"localhost:{port}:127.0.0.1", .. more]);

    public static string Address(int port, string path = "/") => $"https://localhost:{port}{path}";
}
