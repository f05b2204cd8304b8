using System.Globalization;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Tests;

/// <summary>openssl s_client and s_server: who they trust, and where.</summary>
internal static class OpenSslProgram
{
    public static string Flag(SslProtocols version) => version == SslProtocols.Tls12 ? "-tls1_2" : "-tls1_3";

    /// <summary>A client that trusts the test authority alone and ends with its input.</summary>
    public static ExternalProgram Connect(
        int port, TemporaryDirectory directory, SslProtocols version, params string[] more) =>
        ExternalProgram.Start(
            "openssl",
            directory.FullName,
            ["s_client", "-connect", $"127.0.0.1:{port}", "-servername", "localhost", Flag(version), "-nocommands",
            "-verify_return_error", "-CAfile", Certificates.WriteAuthority(directory.FullName), .. more]);

    /// <summary>A server that sends each line back reversed, and the port it chose.</summary>
    public static Task<(ExternalProgram Program, int Port)> ServeAsync(
        X509Certificate2 certificate, TemporaryDirectory directory, SslProtocols version, params string[] more) =>
        ServeAsync("-rev", certificate, directory, version, more);

    /// <summary>A server that answers a request with a page about its connection, and the port it chose.</summary>
    public static Task<(ExternalProgram Program, int Port)> ServeStatusAsync(
        X509Certificate2 certificate, TemporaryDirectory directory, SslProtocols version, params string[] more) =>
        ServeAsync("-www", certificate, directory, version, more);

    /// <summary>
    /// A server that sends its input and prints what it receives, messages too; a line that is just c asks for the client's
    /// certificate.
    /// </summary>
    public static Task<(ExternalProgram Program, int Port)> ServeInteractivelyAsync(
        X509Certificate2 certificate, TemporaryDirectory directory, SslProtocols version) =>
        ServeAsync("-msg", certificate, directory, version);

    /// <summary>
    /// A server that sends its input and writes out what it receives, and its messages to a file of that name; a line that is
    /// just k or K updates its keys.
    /// </summary>
    public static Task<(ExternalProgram Program, int Port)> ServeForCommandsAsync(
        X509Certificate2 certificate, TemporaryDirectory directory, SslProtocols version) =>
        ServeAsync("-msg", certificate, directory, version, "-msgfile", directory["messages"]);

    /// <summary>A certificate with its key under names of their own, beside another one.</summary>
    public static (string Certificate, string Key) WritePem(X509Certificate2 certificate, TemporaryDirectory directory, string name) =>
        Certificates.WritePem(certificate, Directory.CreateDirectory(directory[name]).FullName);

    /// <summary>Types the command k or K, and waits until the client says that it has sent its KeyUpdate: then more can be typed.</summary>
    public static async Task UpdateKeysAsync(ExternalProgram client, bool request)
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
