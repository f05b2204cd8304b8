using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>Starts a published application from its own folder, in the way its form requires.</summary>
internal static class Programs
{
    /// <summary>Starts a program.</summary>
    /// <param name="program">An assembly, which the machine's runtime starts, or an executable.</param>
    /// <param name="environment">The variables in addition to the test's, without its toggles.</param>
    /// <param name="arguments">The command line.</param>
    public static Application Start(string program, (string, string)[] environment, params string[] arguments)
    {
        string directory = Path.GetDirectoryName(program)!;
        return program.EndsWith(".dll", StringComparison.Ordinal)
            ? Application.Start("dotnet", directory, environment, [program, .. arguments])
            : Application.Start(program, directory, [.. OpenSslFor(program), .. environment], arguments);
    }

    /// <summary>Starts a command, whose standard error becomes a part of its output.</summary>
    public static Application Run(string directory, string[] command, params (string, string)[] environment) =>
        Application.Start("sh", directory, [.. OpenSslFor(command), .. environment], ["-c", "exec \"$@\" 2>&1", "sh", .. command]);

    /// <summary>Returns the report of the application of Apps/Console.cs about its connection to a stock server.</summary>
    public static async Task<string> PingAsync(string program, params (string, string)[] environment)
    {
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        using Application application = Start(program, environment, $"{((IPEndPoint)listener.LocalEndpoint).Port}");
        using TcpClient connection = await listener.AcceptTcpClientAsync().InTime("the application to connect");
        await using SslStream server = new(connection.GetStream());
        await server.AuthenticateAsServerAsync(new SslServerAuthenticationOptions { ServerCertificateContext = Certificates.EcdsaContext })
            .InTime("the handshake");
        byte[] ping = new byte[4];
        await server.ReadExactlyAsync(ping).InTime("the application's bytes");
        await server.WriteAsync(ping).InTime("the answer");
        return await application.SucceedAsync();
    }

    /// <summary>
    /// Returns the variable with which .NET 10 looks for OpenSSL 4, if the cell promises that one and the command has an executable, which may
    /// have .NET 10 in it.
    /// </summary>
    private static (string, string)[] OpenSslFor(params string[] command) =>
        Environment.GetEnvironmentVariable("KTLS_OPENSSL") is { Length: > 0 } promised
            && command.Any(word => File.Exists(word) && !word.EndsWith(".dll", StringComparison.Ordinal))
            ? [("DOTNET_OPENSSL_VERSION_OVERRIDE", promised)]
            : [];
}
