using System.Net;
using System.Net.Sockets;
using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Starts an application that knows nothing of kernel TLS in ways that fail, without the package and with it. Its output and its exit code
/// are the same.
/// </summary>
/// <remarks>FailedStartTests starts servers in such ways within the process, in the inner loop.</remarks>
[Trait("loop", "outer")]
public partial class BrokenStartTests(Workshop workshop)
{
    private const string Https = "--Kestrel:Endpoints:Public:Url=https://127.0.0.1:0";

    /// <summary>Gets the ways: a name, the first argument of Apps/Broken.cs, and more arguments. PORT is a port in use, CERTIFICATE a file.</summary>
    public static TheoryData<string, string, string[]> Ways => new()
    {
        { "an exception of Main", "main", [] },
        { "an exception of Kestrel's options", "kestrel", [] },
        { "an address of another machine", "address", [] },
        { "a socket in no folder", "socket", [] },
        { "an exception of a startup filter", "filter", [] },
        { "an exception of a hosted service", "service", [] },
        { "a service that is not registered", "dependency", [] },
        { "an invalid option", "option", [] },
        { "an exception of a background service", "background", [Https, "CERTIFICATE"] },
        { "an invalid route", "routes", [] },
        { "an exception after the start", "started", [Https, "CERTIFICATE"] },
        { "a port in use", "", ["--urls=http://127.0.0.1:PORT"] },
        { "a port in use, https", "", ["--Kestrel:Endpoints:Public:Url=https://127.0.0.1:PORT", "CERTIFICATE"] },
        { "no certificate", "", ["--urls=https://127.0.0.1:0"] },
        { "a certificate that is missing", "", [Https, "--Kestrel:Certificates:Default:Path=/nowhere/certificate.pem"] },
        { "a key that is missing", "", [Https, "CERTIFICATE", "--Kestrel:Certificates:Default:KeyPath=/nowhere/key.pem"] },
        { "a malformed address", "", ["--urls=http//127.0.0.1:0"] },
        { "an unknown scheme", "", ["--urls=htps://127.0.0.1:0"] },
        { "an endpoint without an address", "", ["--Kestrel:Endpoints:Public:Protocols=Http1"] },
        { "an unknown protocol", "stop", [Https, "CERTIFICATE", "--Kestrel:Endpoints:Public:Protocols=Http9"] },
        { "an unknown version of TLS", "stop", [Https, "CERTIFICATE", "--Kestrel:Endpoints:Public:SslProtocols:0=Tls9"] },
        { "a start-up assembly that is missing", "stop", ["--urls=http://127.0.0.1:0", "--hostingStartupAssemblies=Nowhere"] },
        { "an unknown log level", "stop", ["--urls=http://127.0.0.1:0", "--Logging:LogLevel:Default=Loud"] },
        { "no failure", "stop", [Https, "CERTIFICATE"] },
    };

    [Theory]
    [MemberData(nameof(Ways))]
    public async Task The_package_changes_neither_the_output_nor_the_exit_code(string name, string way, string[] arguments)
    {
        string without = Path.Combine(await workshop.PublishAsync(ConsumerApp.Plain, "plain"), "plain.dll");
        string with = Path.Combine(await workshop.PublishAsync(ConsumerApp.Broken, "broken"), "broken.dll");
        using TemporaryDirectory directory = new();
        (string certificate, string key) = Certificates.WritePem(Certificates.Ecdsa, directory.FullName);
        using Socket occupied = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        occupied.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        occupied.Listen();
        string[] all =
        [
            .. arguments.SelectMany(a => a == "CERTIFICATE"
                ? (string[])[$"--Kestrel:Certificates:Default:Path={certificate}", $"--Kestrel:Certificates:Default:KeyPath={key}"]
                : [a.Replace("PORT", $"{((IPEndPoint)occupied.LocalEndPoint!).Port}", StringComparison.Ordinal)]),
        ];

        string expected = await RunAsync(without, way, all);
        Assert.Equal(expected, await RunAsync(with, way, all));
        Assert.Equal(expected, await RunAsync(with, way, all, (Application.KernelVariable, "0")));

        // The transport is part of stack traces. It names endpoints before they are bound.
        expected = WithoutFrames(expected);
        Assert.Equal(expected, WithoutFrames(await RunAsync(with, way, all, (Application.KernelVariable, "1"))));
        Assert.Equal(expected, WithoutFrames(await RunAsync(with, way, all, (Application.DirectVariable, "1"))));
        TestContext.Current.TestOutputHelper?.WriteLine($"{name}:\n{expected}");
    }

    /// <summary>Returns the standard output, the standard error and the exit code of an application, without what differs from run to run.</summary>
    private static async Task<string> RunAsync(string program, string way, string[] arguments, params (string, string)[] environment)
    {
        (string, string)[] all =
        [
            ("Logging__Console__FormatterName", "simple"), ("Logging__Console__FormatterOptions__SingleLine", "true"), .. environment,
        ];
        using Application application = Application.Start(
            "sh", Path.GetDirectoryName(program)!, all, ["-c", "exec dotnet \"$@\" 2>&1", "sh", program, way, .. arguments]);
        int code = await application.ExitAsync();
        string said = application.Said.Replace(Path.GetDirectoryName(program)!, "/application", StringComparison.Ordinal)
            .Replace("broken", "plain", StringComparison.Ordinal);
        return $"{Folder().Replace(Port().Replace(said, ":0"), "/Program.cs")}\nexit code {code}";
    }

    /// <summary>Removes stack traces, and what this library logs.</summary>
    private static string WithoutFrames(string said) => string.Join('\n', said.Split('\n')
        .Where(line => !line.StartsWith("   at ", StringComparison.Ordinal) && !Own().IsMatch(line))
        .Select(line => Frame().Replace(line, "")));

    [GeneratedRegex(@":\d{4,5}\b")]
    private static partial Regex Port();

    [GeneratedRegex(@"/\S*/Program\.cs")]
    private static partial Regex Folder();

    [GeneratedRegex(@"^(info|warn): KernelTls\.")]
    private static partial Regex Own();

    // An exception in a log entry of a single line.
    [GeneratedRegex(@" {4}at .*?(?= {4}at | ---> | {4}--- |$)")]
    private static partial Regex Frame();
}
