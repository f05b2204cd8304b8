using System.Diagnostics;
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
        Schema.AssertMembers(frame.GetProperty("process"), "processId", "handshakes", "fallbacks", "failures", "others", "counters");
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

    private static async Task<KtlsStream> ConnectAsync(int port, KtlsOptions options)
    {
        System.Net.Sockets.Socket socket = new(System.Net.Sockets.SocketType.Stream, System.Net.Sockets.ProtocolType.Tcp);
        await socket.ConnectAsync("127.0.0.1", port).InTime();
        KtlsStream stream = new(new System.Net.Sockets.NetworkStream(socket, ownsSocket: true), false, options);
        await stream.AuthenticateAsClientAsync(new System.Net.Security.SslClientAuthenticationOptions
        {
            TargetHost = "localhost",
            CertificateChainPolicy = Certificates.Trust(),
        }).InTime();
        return stream;
    }
}
