using System.Diagnostics;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Tests ktls top.</summary>
[Trait("cell", "tools")]
public class TopTests
{
    [Fact]
    public async Task A_process_s_handshakes_by_EventPipe()
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeAsync(Certificates.Ecdsa, directory, SslProtocols.Tls13);
        using ExternalProgram _ = server;
        using Ktls top = Ktls.Start("top", "--json", "--interval", "0.2", "--process", $"{Environment.ProcessId}");
        JsonElement frame = await FrameAsync(top);
        Schema.AssertMembers(frame, "time", "seconds", "counters", "perSecond", "process", "ended");
        Schema.AssertMembers(frame.GetProperty("process"), "processId", "status", "handshakes", "fallbacks", "fallbackDetails", "failures", "others", "counters");
        Assert.Equal($"{Environment.ProcessId}", frame.Text("process", "processId"));
        Assert.Equal(0, frame.GetProperty("process").GetProperty("handshakes").GetArrayLength());

        // OpenSSL on the socket, so that there is an event on every machine; the kernel if available.
        KtlsOptions options = KtlsPlatform.Probe().IsSupported
            ? new KtlsOptions { Mode = KtlsMode.Required, Directions = KtlsDirections.Send }
            : new KtlsOptions { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl };
        await using KtlsStream stream = await ConnectAsync(port, options);
        long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds;
        while (frame.GetProperty("process").GetProperty("handshakes").GetArrayLength() == 0
            || !frame.GetProperty("process").GetProperty("counters").TryGetProperty("handshakes", out JsonElement counted) || counted.GetDouble() < 1)
        {
            Assert.True(Environment.TickCount64 < deadline, $"Waited for a handshake, and for the counters to have it, in: {frame}");
            frame = await FrameAsync(top);
        }

        JsonElement handshake = Assert.Single(frame.GetProperty("process").GetProperty("handshakes").EnumerateArray());
        Schema.AssertMembers(handshake, "role", "protocol", "cipherSuite", "send", "receive", "library", "count");
        Assert.Equal("client", handshake.Text("role"));
        Assert.Equal("Tls13", handshake.Text("protocol"));
        Assert.Equal(KtlsPlatform.Probe().IsSupported ? "Kernel" : "OpenSsl (DisabledByMode)", handshake.Text("send"));
        top.Signal(Ktls.Interrupt);
        (await top.EndAsync()).AssertExit(ExitCode.Ok);
    }

    /// <summary>The stream is made as that of a woven library.</summary>
    [Fact]
    public async Task A_stream_between_a_library_s_SslStream_and_the_socket_is_named()
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeAsync(Certificates.Ecdsa, directory, SslProtocols.Tls13);
        using ExternalProgram _ = server;
        string[] arguments = ["top", "--interval", "0.2", "--process", $"{Environment.ProcessId}"];
        using Ktls json = Ktls.Start([.. arguments, "--json"]);
        using Ktls text = Ktls.Start(arguments);
        JsonElement frame = await FrameAsync(json);
        await text.LineAsync();

        KtlsOptions options = new() { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl, Library = "A.Library" };
        await using KtlsStream stream = await ConnectAsync(port, options, wraps: true);
        long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds;
        while (frame.GetProperty("process").GetProperty("fallbackDetails").GetArrayLength() == 0)
        {
            Assert.True(Environment.TickCount64 < deadline, $"Waited for a fallback in: {frame}");
            frame = await FrameAsync(json);
        }

        string detail = $"The inner stream is a {typeof(Wrapper).FullName}.";
        JsonElement fallback = Assert.Single(frame.GetProperty("process").GetProperty("fallbackDetails").EnumerateArray());
        Schema.AssertMembers(fallback, "reason", "detail", "library", "count");
        Assert.Equal("NotSocketStream", fallback.Text("reason"));
        Assert.Equal(detail, fallback.Text("detail"));
        Assert.Equal("A.Library", fallback.Text("library"));
        Assert.Equal(1, frame.GetProperty("process").GetProperty("fallbacks").GetProperty("NotSocketStream").GetInt64());

        string line = await text.LineAsync();
        while (!line.Contains("fallback ", StringComparison.Ordinal))
        {
            Assert.True(Environment.TickCount64 < deadline, $"Waited for a fallback, and read last: {line}");
            line = await text.LineAsync();
        }

        Assert.EndsWith($": fallback NotSocketStream=1 library=A.Library {detail}", line, StringComparison.Ordinal);
    }

    [Fact]
    public async Task The_end_of_the_process_is_the_end()
    {
        using TemporaryDirectory directory = new();
        using Ktls watched = Ktls.Start("serve", directory.FullName, "--port", "0");
        await watched.LineAsync();
        using Ktls top = Ktls.Start("top", "--interval", "0.2", "--process", $"{watched.Id}");
        Assert.Contains("kernel: ", await top.LineAsync(), StringComparison.Ordinal);

        watched.Signal(Ktls.Interrupt);
        (await watched.EndAsync()).AssertExit(ExitCode.Ok);

        Ktls.Result result = (await top.EndAsync()).AssertExit(ExitCode.Ok);
        Assert.Contains($"process {watched.Id} has ended", result.Output, StringComparison.Ordinal);
        Assert.DoesNotContain('\x1b', result.Output);
    }

    [Fact]
    public async Task A_process_that_is_not_NET()
    {
        using Process sleeper = Process.Start("sleep", "600");
        try
        {
            Ktls.Result result = (await Ktls.RunAsync("top", "--process", $"{sleeper.Id}")).AssertExit(ExitCode.Failed);
            result.AssertErrors($"process {sleeper.Id} cannot be watched");
            result.AssertErrors("Expected a running .NET process");
        }
        finally
        {
            sleeper.Kill();
        }
    }

    [Fact]
    public async Task The_kernel_s_counters_and_their_rates()
    {
        Ktls.Result result = await Ktls.RunAsync("top", "--json", "--interval", "0.2", "--count", "2");
        if (!KtlsPlatform.Probe().IsSupported)
        {
            Assert.False(Cell.KtlsExpected);
            Assert.Contains("there is nothing to watch", result.AssertExit(ExitCode.Failed).Errors, StringComparison.Ordinal);
            return;
        }

        string[] frames = result.AssertExit(ExitCode.Ok).Output.Split('\n', StringSplitOptions.RemoveEmptyEntries);
        Assert.Equal(2, frames.Length);
        JsonElement last = JsonDocument.Parse(frames[1]).RootElement;
        Assert.True(last.GetProperty("counters").GetProperty("TlsTxSw").GetInt64() >= 0);
        Assert.True(last.GetProperty("seconds").GetDouble() > 0);
        Assert.Equal(JsonValueKind.Null, last.GetProperty("process").ValueKind);
    }

    private static async Task<JsonElement> FrameAsync(Ktls top) => JsonDocument.Parse(await top.LineAsync()).RootElement;

    private static async Task<KtlsStream> ConnectAsync(int port, KtlsOptions options, bool wraps = false)
    {
        Socket socket = new(SocketType.Stream, ProtocolType.Tcp);
        await socket.ConnectAsync("127.0.0.1", port).InTime();
        KtlsStream stream = new(wraps ? new Wrapper(socket) : new NetworkStream(socket, ownsSocket: true), false, options);
        await stream.AuthenticateAsClientAsync(new System.Net.Security.SslClientAuthenticationOptions
        {
            TargetHost = "localhost",
            CertificateChainPolicy = Certificates.Trust(),
        }).InTime();
        return stream;
    }

    private sealed class Wrapper(Socket socket) : NetworkStream(socket, ownsSocket: true);
}
