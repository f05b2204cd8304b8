using System.Globalization;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Tests what ktls says when the world is at fault: its exit code, and one line that names the cause.</summary>
[Trait("cell", "tools")]
public class FailureTests
{
    private const string FullDisk = "standard output cannot be written: No space left on device. ";

    [Fact]
    public async Task A_certificate_and_keys_that_do_not_fit()
    {
        using TemporaryDirectory directory = new();
        (string certificate, string key) = OpenSslProgram.WritePem(Certificates.Client, directory, "client");
        (_, string otherKey) = OpenSslProgram.WritePem(Certificates.Ecdsa, directory, "server");
        (_, string rsaKey) = OpenSslProgram.WritePem(Certificates.Rsa, directory, "rsa");
        string encrypted = directory["encrypted.pem"];
        using ECDsa own = Certificates.Client.GetECDsaPrivateKey()!;
        await File.WriteAllTextAsync(
            encrypted, own.ExportEncryptedPkcs8PrivateKeyPem("secret", new PbeParameters(PbeEncryptionAlgorithm.Aes256Cbc, HashAlgorithmName.SHA256, 1000)));
        string pfx = directory["own.pfx"];
        await File.WriteAllBytesAsync(pfx, Certificates.Client.Export(X509ContentType.Pfx, "secret"));
        string password = directory["password"];
        await File.WriteAllTextAsync(password, "wrong\n");

        string both = $"--certificate '{certificate}' with --key ";
        (string Expected, string[] Arguments)[] cases =
        [
            ($"{both}'{otherKey}' cannot be used: ", ["--certificate", certificate, "--key", otherKey]),
            ($"{both}'{rsaKey}' cannot be used: ", ["--certificate", certificate, "--key", rsaKey]),
            ($"{both}'{encrypted}' cannot be used: ", ["--certificate", certificate, "--key", encrypted]),
            ($"{both}'{encrypted}' and --password-file '{password}' cannot be used: ", ["--certificate", certificate, "--key", encrypted, "--password-file", password]),
            ($"--certificate '{certificate}' cannot be used: ", ["--certificate", certificate]),
            ($"--certificate '{key}' with --key '{certificate}' cannot be used: ", ["--certificate", key, "--key", certificate]),
            ($"--certificate '{pfx}' cannot be used: ", ["--certificate", pfx]),
            ($"--certificate '{pfx}' and --password-file '{password}' cannot be used: ", ["--certificate", pfx, "--password-file", password]),
            ($"--certificate '{pfx}' with --key '{key}' cannot be used: ", ["--certificate", pfx, "--key", key]),
        ];
        foreach ((string expected, string[] arguments) in cases)
        {
            (await Ktls.RunAsync(["serve", "/tmp", "--port", "0", .. arguments, "--json"])).AssertFailure(ExitCode.WrongUsage, expected).AssertErrors("Expected a PEM file");
        }

        (await Ktls.RunAsync(["probe", "localhost:1", .. cases[0].Arguments, "--json"])).AssertFailure(ExitCode.WrongUsage, cases[0].Expected);
        (await Ktls.RunAsync(["connect", "localhost:1", .. cases[^1].Arguments, "--json"])).AssertFailure(ExitCode.WrongUsage, cases[^1].Expected);
    }

    [Theory]
    [InlineData("probe")]
    [InlineData("connect")]
    public async Task Peers_that_cannot_be_reached(string command)
    {
        using ReservedPort port = new();

        (await Ktls.RunAsync(command, "nobody.invalid:443", "--json")).AssertFailure(ExitCode.Unreachable, "nobody.invalid:443 cannot be reached: ");
        (await Ktls.RunAsync(command, $"127.0.0.1:{port}", "--json"))
            .AssertFailure(ExitCode.Unreachable, $"127.0.0.1:{port} cannot be reached: Connection refused");
    }

    [Fact]
    public async Task Addresses_that_cannot_be_listened_on()
    {
        using TcpListener taken = new(IPAddress.Loopback, 0);
        taken.Start();
        string port = string.Create(CultureInfo.InvariantCulture, $"{((IPEndPoint)taken.LocalEndpoint).Port}");

        (await Ktls.RunAsync("serve", "/tmp", "--port", port, "--json")).AssertFailure(ExitCode.Failed, $"cannot listen on 127.0.0.1:{port}: ");
        (await Ktls.RunAsync("serve", "/tmp", "--address", "192.0.2.1", "--json")).AssertFailure(ExitCode.Failed, "cannot listen on 192.0.2.1:8443: ");
    }

    [Fact]
    public async Task Processes_that_cannot_be_watched()
    {
        using TemporaryDirectory directory = new();
        using Ktls running = Ktls.Start("serve", directory.FullName, "--port", "0");
        await running.LineAsync();

        (await Ktls.RunAsync("top", "--process", "2000000000", "--json")).AssertFailure(ExitCode.Failed, "process 2000000000 cannot be watched: ");
        (await Ktls.ShellAsync([], "ktls top --process $$ --json")).AssertFailure(ExitCode.Failed, " cannot be watched: ");
        (await Ktls.RunAsync([("TMPDIR", directory.FullName)], "top", "--process", $"{running.Id}", "--json"))
            .AssertFailure(ExitCode.Failed, "with the same TMPDIR");
    }

    [Theory]
    [InlineData("ktls info > /dev/full", "ktls info: " + FullDisk)]
    [InlineData("ktls info --json > /dev/full", "ktls info: " + FullDisk)]
    [InlineData("ktls --help > /dev/full", "ktls: " + FullDisk)]
    [InlineData("ktls --version > /dev/full", "ktls: " + FullDisk)]
    [InlineData("ktls serve /tmp --port 0 > /dev/full", "ktls serve: " + FullDisk)]
    [InlineData("ktls bench --seconds 0.01 --row ping-64 > /dev/full", "ktls bench: " + FullDisk)]
    [InlineData("ktls info >&-", "ktls info: standard output cannot be written: ")]
    [InlineData("TMPDIR=/nonexistent ktls bench --row ping-64", "to measure with, cannot be written: ")]
    public async Task A_disk_that_is_full_or_missing(string line, string expected)
    {
        Ktls.Result result = (await Ktls.ShellAsync([], line)).AssertExit(ExitCode.Failed);

        Assert.Contains(expected, Assert.Single(result.Errors.TrimEnd('\n').Split('\n')), StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("ktls info | true; exit ${PIPESTATUS[0]}", null)]
    [InlineData("ktls top --process $$ 2>&1 | true; exit ${PIPESTATUS[0]}", ExitCode.Failed)]
    [InlineData("ktls serve /nonexistent 2> /dev/full", ExitCode.WrongUsage)]
    [InlineData("ktls serve /nonexistent 2>&-", ExitCode.WrongUsage)]
    public async Task A_reader_that_leaves_is_no_failure(string line, int? code)
    {
        Ktls.Result result = await Ktls.ShellAsync([], line);

        result.AssertExit(code ?? (KtlsPlatform.Probe().IsSupported ? ExitCode.Ok : ExitCode.No));
        Assert.Empty(result.Errors);
    }

    /// <summary>A signal ends top, and the end of its reader.</summary>
    [Fact]
    public async Task A_watch_ends_when_its_reader_leaves()
    {
        using TemporaryDirectory directory = new();
        using Ktls running = Ktls.Start("serve", directory.FullName, "--port", "0");
        await running.LineAsync();

        Ktls.Result result = await Ktls.ShellAsync([], $"ktls top --process {running.Id} --interval 0.1 | head -n 1; exit ${{PIPESTATUS[0]}}");

        result.AssertExit(ExitCode.Ok);
        Assert.Contains("kernel: ", Assert.Single(result.Output.TrimEnd('\n').Split('\n')), StringComparison.Ordinal);
        Assert.Empty(result.Errors);
    }

    [Theory]
    [InlineData("0", "DisabledByToggle: ")]
    [InlineData("yes", "")]
    public async Task Serve_names_the_switch_that_is_in_the_way(string value, string reason)
    {
        using TemporaryDirectory directory = new();
        using Ktls tool = Ktls.Start([(Ktls.KernelVariable, value)], ["serve", directory.FullName, "--port", "0"]);
        await tool.LineAsync();
        string verdict = await tool.LineAsync();
        tool.Signal(Ktls.Interrupt);
        (await tool.EndAsync()).AssertExit(ExitCode.Ok);

        string expected = reason.Length == 0 && KtlsPlatform.Probe().IsSupported
            ? "kernel TLS is available here"
            : $"no kernel TLS here, the stock SslStream is used: {(reason.Length != 0 ? reason : $"{KtlsPlatform.Probe().NotSupportedReason}: ")}";
        Assert.StartsWith(expected, verdict, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Stock_is_never_measured_as_something_else()
    {
        (await Ktls.RunAsync([(Ktls.KernelVariable, "0")], "bench", "--seconds", "0.01", "--json"))
            .AssertFailure(ExitCode.Failed, "nothing to compare with the stock SslStream: neither kernel TLS nor OpenSSL on the socket is possible here. DisabledByToggle: ");
    }

    /// <summary>The report of a connection cannot be written: the server ends instead of failing its connections.</summary>
    [Fact]
    public async Task A_server_ends_when_its_report_cannot_be_written()
    {
        if (!OperatingSystem.IsLinux() || Environment.UserName != "root")
        {
            Assert.Skip("Mounts a small file system: needs root.");
        }

        const string Script = """
            mkdir "$DIR/small" && mount -t tmpfs -o size=4k none "$DIR/small" || exit 99
            : > "$DIR/small/log" # before the loop reads it
            (
                for i in $(seq 100); do
                    port=$(sed -n 's|^serving .*:||p' "$DIR/small/log")
                    [ -z "$port" ] || break
                    sleep 0.1
                done
                for i in $(seq 200); do curl --silent --insecure --max-time 20 --output /dev/null "https://127.0.0.1:$port/file" || break; done
            ) &
            dotnet "$KTLS" serve "$DIR" --port 0 > "$DIR/small/log"
            """;
        using TemporaryDirectory directory = new();
        await File.WriteAllTextAsync(directory["file"], "hello");
        Ktls.Result result = await Ktls.ShellAsync(
            [("DIR", directory.FullName), ("KTLS", Ktls.Path), ("SCRIPT", Script)], "unshare --mount bash -c \"$SCRIPT\"");

        Assert.SkipWhen(result.ExitCode == 99, "No file system can be mounted here.");
        result.AssertExit(ExitCode.Failed);
        Assert.StartsWith("ktls serve: " + FullDisk, result.Errors, StringComparison.Ordinal);
        Assert.Single(result.Errors.TrimEnd('\n').Split('\n'));
    }

    [Fact]
    public async Task A_connection_that_breaks_is_an_object_too()
    {
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        int port = ((IPEndPoint)listener.LocalEndpoint).Port;
        using Ktls tool = Ktls.Start("connect", $"localhost:{port}", "--insecure", "--json");
        using (TcpClient connection = await listener.AcceptTcpClientAsync().InTime())
        {
            await using SslStream stream = new(connection.GetStream());
            await stream.AuthenticateAsServerAsync(Certificates.Ecdsa).InTime();
            await stream.WriteAsync("up\n"u8.ToArray());
            Assert.Equal("up", await tool.LineAsync());
            connection.Client.Close(0); // a reset
        }

        Ktls.Result result = (await tool.EndAsync()).AssertExit(ExitCode.Failed);

        JsonElement[] events = [.. result.Errors.TrimEnd('\n').Split('\n').Select(l => JsonDocument.Parse(l).RootElement)];
        Assert.Equal(["connected", "closed"], events[..2].Select(e => e.Text("event")));
        Schema.AssertMembers(events[2], "error", "exitCode");
        Assert.StartsWith($"the connection to localhost:{port} broke: ", events[2].Text("error"), StringComparison.Ordinal);
    }
}
