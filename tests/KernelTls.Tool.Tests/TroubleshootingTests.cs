using System.Net;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>
/// Creates problems and follows docs/troubleshooting.md: the symptom's row names a command, and its output is, or names the row of, the answer.
/// </summary>
/// <remarks>On a machine without kernel TLS, its reason comes first where the problem is about kernel TLS.</remarks>
[Trait("loop", "outer")]
[Trait("cell", "tools")]
public class TroubleshootingTests
{
    private const string InTheWay = "It should be on and is not";
    private static readonly string[] s_lines = File.ReadAllLines(Path.Combine(AppContext.BaseDirectory, "troubleshooting.md"));

    /// <summary>The library cannot be switched on by a value that is none.</summary>
    [Theory]
    [InlineData("0", "switch +Off, by DOTNET_SYSTEM_NET_SECURITY_KTLS=0", "DisabledByToggle", "Unset it or set it to `1`")]
    [InlineData("on", "switch +Invalid, by DOTNET_SYSTEM_NET_SECURITY_KTLS=on", "ToggleInvalid", "correct it and restart")]
    [InlineData("", "switch +Unset", "NotEnabled", "`DOTNET_SYSTEM_NET_SECURITY_KTLS=1`")]
    public async Task The_variable(string value, string line, string reason, string remedy)
    {
        Row(InTheWay, "`ktls info`");

        Assert.Matches(line, (await Ktls.RunAsync([(Ktls.KernelVariable, value)], "info")).Output);

        Row($"`{reason}`", remedy);
    }

    [Fact]
    public async Task The_kernel_has_no_module()
    {
        Row("Is it on?", "`ktls info`");

        Ktls.Result result = await Ktls.RunAsync("info");

        if (!KtlsPlatform.Probe().IsSupported)
        {
            Assert.StartsWith($"Kernel TLS: no: {KtlsPlatform.Probe().NotSupportedReason}: ", result.AssertExit(ExitCode.No).Output, StringComparison.Ordinal);
        }

        Row("`ModuleMissing`", "`modprobe tls`");
    }

    [Theory]
    [InlineData("NativeLibraryMissing", "keep the folder `runtimes`", "")]
    [InlineData("NativeLibraryMismatch", "Deploy both from one version of the package or the bundle", "Unable to find an entry point named 'KtlsNative_GetInterface'")]
    public async Task The_native_library_was_not_deployed_or_is_of_another_build(string reason, string remedy, string detail)
    {
        Row(InTheWay, "`ktls info`");
        using TemporaryDirectory directory = new();
        foreach (string file in Directory.GetFiles(Path.GetDirectoryName(Ktls.Path)!))
        {
            File.Copy(file, directory[Path.GetFileName(file)]);
        }

        string shim = directory["libKernelTls.Native.so"];
        if (reason == "NativeLibraryMissing")
        {
            File.Delete(shim);
        }
        else
        {
            OtherShim.RemoveExports(shim, "KtlsNative_GetInterface");
        }

        Ktls.Result result = await Ktls.ShellAsync([], $"dotnet '{directory["KernelTls.Tool.dll"]}' info");

        Assert.StartsWith($"Kernel TLS: no: {reason}: ", result.AssertExit(ExitCode.No).Output, StringComparison.Ordinal);
        Assert.Contains(detail, result.Output, StringComparison.Ordinal);
        Row($"`{reason}`", remedy);
    }

    [Fact]
    public async Task A_certificate_that_is_not_trusted()
    {
        Row("A peer's certificate is refused", "`ktls probe HOST:PORT` (exit code 5)");
        Ktls.Result result = await ProbeAsync(Certificates.WrongName, SslProtocols.Tls13);

        result.AssertExit(ExitCode.NotTrusted).AssertErrors("NameMismatch (it is for ");
        result.AssertErrors("--server-name NAME");
    }

    [Fact]
    public async Task A_peer_that_requires_a_client_certificate()
    {
        Row("`ktls probe` or `ktls connect` ends with exit code 7", "`--certificate FILE --key FILE`");
        Ktls.Result result = await ProbeAsync(Certificates.Ecdsa, SslProtocols.Tls13, "-Verify", "1");

        result.AssertExit(ExitCode.Refused).AssertErrors("alert certificate_required. It requires a client certificate: specify one with --certificate");
    }

    [Fact]
    public async Task A_peer_with_a_cipher_that_no_kernel_has()
    {
        Row("Not with this peer", "`ktls probe HOST:PORT`");
        Ktls.Result result = await ProbeAsync(Certificates.Ecdsa, SslProtocols.Tls12, "-cipher", "ECDHE-ECDSA-AES128-SHA256");

        result.AssertExit(ExitCode.No);
        Assert.Matches("cipher +none that any kernel implements", result.Output);
        if (KtlsPlatform.Probe().IsSupported)
        {
            Assert.Contains("CipherNotOffloadable: ", result.Output, StringComparison.Ordinal);
        }

        Row("`CipherNotOffloadable`", "Offer AES-GCM");
    }

    [Fact]
    public async Task A_peer_that_pads()
    {
        Row("Receiving is slower than it was", "`ktls probe HOST:PORT`, the line `records`");
        Ktls.Result result = await ProbeAsync(Certificates.Ecdsa, SslProtocols.Tls13, "-record_padding", "512");

        Assert.Matches("records .* padded, by [0-9]+ bytes in all: no gain from ExpectNoPadding with this peer", result.Output);
    }

    [Theory]
    [InlineData("NotSocketStream", "Remove the wrapper")]
    [InlineData("Renegotiation", "`AllowRenegotiation = false`")]
    [InlineData("ProtocolNotOffloadable", "`SslProtocols.None`")]
    public async Task A_connection_that_falls_back(string reason, string remedy)
    {
        Row(InTheWay, "`ktls top --process PID`");
        using Ktls top = Ktls.Start("top", "--interval", "0.2", "--process", $"{Environment.ProcessId}");
        await top.LineAsync();

        await FallBackAsync(reason);

        string line = await top.LineAsync();
        long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds;
        while (!Regex.IsMatch(line, $@"fallbacks .*\b{reason}=1\b"))
        {
            Assert.True(Environment.TickCount64 < deadline, $"Waited for {reason}, and read last: {line}");
            line = await top.LineAsync();
        }

        Row($"`{reason}`", remedy);
    }

    [Fact]
    public async Task A_port_that_is_in_use()
    {
        using TcpListener taken = new(IPAddress.Loopback, 0);
        taken.Start();
        int port = ((IPEndPoint)taken.LocalEndpoint).Port;
        Row("`Failed to bind to address`, `address already in use` at the start", "`ss -tlnp`");

        (await Ktls.RunAsync("serve", "/tmp", "--port", $"{port}")).AssertErrors("Failed to bind to address https://127.0.0.1:");

        Assert.Matches($"127[.]0[.]0[.]1:{port} .*pid={Environment.ProcessId},", (await Ktls.ShellAsync([], "ss -tlnp")).Output);
    }

    /// <summary>The document quotes the message.</summary>
    [Fact]
    public async Task A_peer_that_closes_without_close_notify()
    {
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        using TcpClient client = new();
        Task connecting = client.ConnectAsync(IPAddress.Loopback, ((IPEndPoint)listener.LocalEndpoint).Port);
        using TcpClient server = await listener.AcceptTcpClientAsync().InTime();
        await connecting.InTime();
        KtlsOptions options = new() { Mode = KtlsMode.Preferred, Fallback = KtlsFallback.OpenSsl, RequireCloseNotify = true };
        await using KtlsStream stream = new(client.GetStream(), leaveInnerStreamOpen: false, options);
        await using System.Net.Security.SslStream peer = new(server.GetStream());
        await Task.WhenAll(
            stream.AuthenticateAsClientAsync(new System.Net.Security.SslClientAuthenticationOptions
            {
                TargetHost = "localhost",
                RemoteCertificateValidationCallback = (_, _, _, _) => true,
            }),
            peer.AuthenticateAsServerAsync(Certificates.Ecdsa)).InTime();

        server.Client.Shutdown(SocketShutdown.Send);
        IOException failure = await Assert.ThrowsAsync<IOException>(() => stream.ReadAsync(new byte[1]).AsTask());

        string symptom = Assert.Single(s_lines, l => l.StartsWith("| `IOException`: \"", StringComparison.Ordinal)).Split('"')[1];
        Assert.Contains(symptom, failure.Message, StringComparison.Ordinal);
        Row("`IOException`: \"", "`KtlsOptions.RequireCloseNotify`");
    }

    private static async Task FallBackAsync(string reason)
    {
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        using TcpClient client = new();
        Task connecting = client.ConnectAsync(IPAddress.Loopback, ((IPEndPoint)listener.LocalEndpoint).Port);
        using TcpClient server = await listener.AcceptTcpClientAsync().InTime();
        await connecting.InTime();
        KtlsOptions options = new() { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl }; // on every machine
        Stream inner = reason == "NotSocketStream" ? new BufferedStream(server.GetStream()) : server.GetStream();
        await using KtlsStream stream = new(inner, leaveInnerStreamOpen: false, options);
        await using System.Net.Security.SslStream peer = new(client.GetStream());
#pragma warning disable SYSLIB0039, CA5397 // TLS 1.1 is the problem.
        await Task.WhenAll(
            stream.AuthenticateAsServerAsync(new System.Net.Security.SslServerAuthenticationOptions
            {
                ServerCertificateContext = Certificates.EcdsaContext,
                AllowRenegotiation = reason == "Renegotiation",
                EnabledSslProtocols = reason == "ProtocolNotOffloadable" ? SslProtocols.Tls11 | SslProtocols.Tls12 : SslProtocols.None,
            }),
            peer.AuthenticateAsClientAsync(new System.Net.Security.SslClientAuthenticationOptions
            {
                TargetHost = "localhost",
                RemoteCertificateValidationCallback = (_, _, _, _) => true,
            })).InTime();
#pragma warning restore SYSLIB0039, CA5397
    }

    /// <summary>Runs ktls probe against an OpenSSL server with these settings.</summary>
    private static async Task<Ktls.Result> ProbeAsync(X509Certificate2 certificate, SslProtocols version, params string[] more)
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeStatusAsync(certificate, directory, version, more);
        using ExternalProgram _ = server;
        return await Ktls.RunAsync("probe", $"localhost:{port}", "--ca", Certificates.WriteAuthority(directory.FullName));
    }

    /// <summary>Asserts that the row that begins with this symptom or reason contains the command or the remedy.</summary>
    private static void Row(string beginning, string content) =>
        Assert.Contains(content, Assert.Single(s_lines, l => l.StartsWith($"| {beginning}", StringComparison.Ordinal)), StringComparison.Ordinal);
}
