using System.Globalization;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Tests;

/// <summary>Runs openssl s_client and s_server with the test's certificates.</summary>
internal static class OpenSslProgram
{
    public static string Flag(SslProtocols version) => version == SslProtocols.Tls12 ? "-tls1_2" : "-tls1_3";

    /// <summary>Starts a client that trusts only the test authority and ends with its input.</summary>
    public static ExternalProgram Connect(
        int port, TemporaryDirectory directory, SslProtocols version, params string[] more) =>
        ExternalProgram.Start(
            "openssl",
            directory.FullName,
            ["s_client", "-connect", $"127.0.0.1:{port}", "-servername", "localhost", Flag(version), "-nocommands",
            "-verify_return_error", "-CAfile", Certificates.WriteAuthority(directory.FullName), .. more]);

    /// <summary>Starts a server that returns each line reversed, and returns it with the port that it chose.</summary>
    public static Task<(ExternalProgram Program, int Port)> ServeAsync(
        X509Certificate2 certificate, TemporaryDirectory directory, SslProtocols version, params string[] more) =>
        ServeAsync("-rev", certificate, directory, version, more);

    /// <summary>
    /// Starts a server that answers a request with a page about its connection, and returns it with the port that it
    /// chose.
    /// </summary>
    public static Task<(ExternalProgram Program, int Port)> ServeStatusAsync(
        X509Certificate2 certificate, TemporaryDirectory directory, SslProtocols version, params string[] more) =>
        ServeAsync("-www", certificate, directory, version, more);

    /// <summary>
    /// Starts a server that sends its input and prints what it receives, including messages. A line with only c
    /// requests the client's certificate.
    /// </summary>
    public static Task<(ExternalProgram Program, int Port)> ServeInteractivelyAsync(
        X509Certificate2 certificate, TemporaryDirectory directory, SslProtocols version) =>
        ServeAsync("-msg", certificate, directory, version);

    /// <summary>
    /// Starts a server that sends its input, writes what it receives, and writes its messages to a file of that name. A
    /// line with only k or K updates its keys.
    /// </summary>
    public static Task<(ExternalProgram Program, int Port)> ServeForCommandsAsync(
        X509Certificate2 certificate, TemporaryDirectory directory, SslProtocols version) =>
        ServeAsync("-msg", certificate, directory, version, "-msgfile", directory["messages"]);

    /// <summary>Writes a certificate with its key under a separate name, beside another one.</summary>
    public static (string Certificate, string Key) WritePem(X509Certificate2 certificate, TemporaryDirectory directory, string name) =>
        Certificates.WritePem(certificate, Directory.CreateDirectory(directory[name]).FullName);

    /// <summary>
    /// Types the command k or K, and waits until the client reports that it has sent its KeyUpdate. After that more can
    /// be typed.
    /// </summary>
    public static async Task UpdateSendKeyAsync(ExternalProgram client, bool request)
    {
        int before = client.Errors.Split("KEYUPDATE").Length;
        await client.SayAsync(request ? "K" : "k");
        await client.ErrorsContain(string.Concat(Enumerable.Repeat("KEYUPDATE\n", before)));
    }

    private static async Task<(ExternalProgram Program, int Port)> ServeAsync(
        string kind, X509Certificate2 certificate, TemporaryDirectory directory, SslProtocols version, params string[] more)
    {
        (string certificatePath, string key) = Certificates.WritePem(certificate, directory.FullName);
        ExternalProgram program = ExternalProgram.Start(
            "openssl",
            directory.FullName,
            ["s_server", "-accept", "127.0.0.1:0", kind, Flag(version), "-cert", certificatePath, "-key", key,
            "-CAfile", Certificates.WriteAuthority(directory.FullName), .. more]);
        string said = await program.OutputUpToAsync("ACCEPT") + await program.OutputUpToAsync("\n");
        return (program, int.Parse(said.TrimEnd().Split(':')[^1], CultureInfo.InvariantCulture));
    }
}
