using System.Security.Authentication;
using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Tests ktls connect against openssl s_server.</summary>
[Trait("cell", "tools")]
public class ConnectTests
{
    [Theory]
    [InlineData(SslProtocols.Tls12)]
    [InlineData(SslProtocols.Tls13)]
    public async Task Input_goes_to_the_peer_and_its_data_to_the_output(SslProtocols version)
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeAsync(Certificates.Ecdsa, directory, version);
        using ExternalProgram _ = server;
        using Ktls tool = Start(directory, port, "--json");

        await tool.Input.WriteAsync("hello kernel\n");
        string answer = await tool.LineAsync();
        tool.Input.Close();
        Ktls.Result result = (await tool.EndAsync()).AssertExit(ExitCode.Ok);

        Assert.Equal("lenrek olleh", answer);
        JsonElement[] events = [.. result.Errors.Split('\n', StringSplitOptions.RemoveEmptyEntries).Select(l => JsonDocument.Parse(l).RootElement)];
        Assert.Equal(["connected", "closed"], events.Select(e => e.Text("event")));
        Schema.AssertMembers(
            events[0], "event", "peer", "protocol", "cipherSuite", "applicationProtocol", "resumed", "send", "sendReason", "receive",
            "receiveReason", "certificate");
        Schema.AssertMembers(events[1], "event", "how", "sent", "received", "counters");
        Assert.Equal(version.ToString(), events[0].Text("protocol"));
        Assert.Equal("13", events[1].Text("sent"));
        Assert.Equal("13", events[1].Text("received"));
        Assert.Equal(KtlsPlatform.Probe().IsSupported ? "Kernel" : "Managed", events[0].Text("send"));
        Assert.Equal(KtlsPlatform.Probe().NotSupportedReason.ToString(), events[0].Text("sendReason"));
        if (KtlsPlatform.Probe().IsSupported)
        {
            Assert.Equal("1", events[1].Text("counters", "TlsTxSw"));
        }
    }

    [Fact]
    public async Task Keys_are_changed_by_command()
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeAsync(Certificates.Ecdsa, directory, SslProtocols.Tls13);
        using ExternalProgram _ = server;
        using Ktls tool = Start(directory, port, "--commands");

        await tool.Input.WriteAsync("k\nafter\n");
        string answer = await tool.LineAsync();
        await tool.Input.WriteAsync("K\nagain\ns\nQ\n");
        Ktls.Result result = (await tool.EndAsync()).AssertExit(ExitCode.Ok);

        Assert.Equal("retfa", answer);
        result.AssertErrors("state ");
        if (KtlsPlatform.Probe().CanRekey)
        {
            result.AssertErrors("keys        changed, and the peer was requested");
            result.AssertErrors("TlsTxRekeyOk +");
        }
        else
        {
            result.AssertErrors("keys        not changed: ");
        }
    }

    [Fact]
    public async Task Required_fails_where_it_cannot_be_had()
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeAsync(Certificates.Ecdsa, directory, SslProtocols.Tls12);
        using ExternalProgram _ = server;
        using Ktls tool = Start([(Ktls.KernelVariable, "0")], directory, port, "--mode", "required", "--json");
        tool.Input.Close();

        (await tool.EndAsync()).AssertFailure(ExitCode.No, "kernel TLS, which --mode required asks for, is not available. DisabledByToggle: ");
    }

    /// <summary>It shows whether the stock stream fails too, so no variable may change it.</summary>
    [Theory]
    [InlineData(Ktls.KernelVariable)]
    [InlineData("DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL")]
    public async Task Mode_disabled_is_the_stock_stream_whatever_the_variables_say(string variable)
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeAsync(Certificates.Ecdsa, directory, SslProtocols.Tls13);
        using ExternalProgram _ = server;
        using Ktls tool = Start([(variable, "1")], directory, port, "--mode", "disabled");
        await tool.Input.WriteAsync("abc\n");
        Assert.Equal("cba", await tool.LineAsync());
        tool.Input.Close();

        (await tool.EndAsync()).AssertExit(ExitCode.Ok).AssertErrors("send=managed (DisabledByMode) receive=managed (DisabledByMode)");
    }

    [Fact]
    public async Task The_kill_switch_is_honoured_and_said()
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeAsync(Certificates.Ecdsa, directory, SslProtocols.Tls13);
        using ExternalProgram _ = server;
        using Ktls tool = Start([(Ktls.KernelVariable, "0")], directory, port);
        await tool.Input.WriteAsync("abc\n");
        Assert.Equal("cba", await tool.LineAsync());
        tool.Input.Close();

        Ktls.Result result = (await tool.EndAsync()).AssertExit(ExitCode.Ok);

        result.AssertErrors("send=managed (DisabledByToggle) receive=managed (DisabledByToggle)");
    }

    [Fact]
    public async Task An_interrupt_closes_the_connection()
    {
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeAsync(Certificates.Ecdsa, directory, SslProtocols.Tls13);
        using ExternalProgram _ = server;
        using Ktls tool = Start(directory, port);
        await tool.Input.WriteAsync("up\n");
        Assert.Equal("pu", await tool.LineAsync());

        tool.Signal(Ktls.Interrupt);
        Ktls.Result result = (await tool.EndAsync()).AssertExit(ExitCode.Interrupted);

        result.AssertErrors("closed      interrupted; sent 3 bytes, received 3");
        await server.ErrorsContain("CONNECTION CLOSED");
    }

    private static Ktls Start(TemporaryDirectory directory, int port, params string[] more) => Start([], directory, port, more);

    private static Ktls Start((string Name, string Value)[] environment, TemporaryDirectory directory, int port, params string[] more) => Ktls.Start(
        environment,
        ["connect", $"localhost:{port}", "--ca", Certificates.WriteAuthority(directory.FullName), "--timeout", $"{Limits.Wait.TotalSeconds}", .. more]);
}
