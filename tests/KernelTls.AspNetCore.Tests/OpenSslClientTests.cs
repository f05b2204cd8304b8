using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests requests typed into openssl s_client.</summary>
[Trait("cell", "smoke")]
public class OpenSslClientTests
{
    private const int Size = 200_001;

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    /// <summary>
    /// On OpenSSL the connection ends cleanly: s_client complains about a server that closes without close_notify.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_request_is_answered_and_the_end_is_said(TlsMode mode, SslProtocols version)
    {
        await using InteropServer server = await InteropServer.StartAsync(mode);
        using ExternalProgram client = OpenSslProgram.Connect(server.Port, server.Directory, version, "-quiet");

        await RequestAsync(client, "/offload", close: false);
        string offload = Offloads.Expected(mode, version);
        await client.OutputUpToAsync($"\r\n\r\n{offload.Length:x}\r\n{offload}\r\n0\r\n\r\n");
        await RequestAsync(client, $"/bytes/{Size}", close: true);
        await ReceiveAsync(client, "Connection: close\r\n");

        Assert.Equal(0, await client.Output.ReadAsync(new byte[1]).InTime("the end of the output"));
        int code = await client.ExitAsync();
        if (Modes.OnOpenSsl.Contains(mode))
        {
            Assert.True(code == 0, client.Errors);
            Assert.DoesNotContain("unexpected eof", client.Errors, StringComparison.Ordinal);
        }

        server.AssertConnections(1, version);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_saved_session_is_resumed(TlsMode mode, SslProtocols version)
    {
        await using InteropServer server = await InteropServer.StartAsync(mode);
        string session = server.Directory["session"];
        foreach (string reuse in new[] { "New", "Reused" })
        {
            string[] sessions = reuse == "New" ? ["-sess_out", session] : ["-sess_in", session];
            using ExternalProgram client = OpenSslProgram.Connect(server.Port, server.Directory, version, sessions);

            string said = await client.OutputUpToAsync(", Cipher is ");
            await RequestAsync(client, $"/bytes/{Size}", close: true);
            await ReceiveAsync(client, "Connection: close\r\n");
            await client.ExitAsync();

            Assert.Contains($"\n{reuse}, TLSv1.", said, StringComparison.Ordinal);
        }

        server.AssertConnections(2, version);
    }

    /// <summary>
    /// RFC 8446, section 4.6.3: the client changes its keys and requests a change of the server's. If the kernel cannot
    /// change keys, the connection ends without a response.
    /// </summary>
    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task Keys_are_updated_between_two_requests(TlsMode mode)
    {
        bool goesOn = mode != TlsMode.Kernel || KtlsPlatform.Probe().CanRekey;
        await using InteropServer server = await InteropServer.StartAsync(mode);
        TlsStatistics before = mode == TlsMode.Kernel ? TlsStatistics.Read() : default;
        using ExternalProgram client = ExternalProgram.Start(
            "openssl", null, "s_client", "-connect", $"127.0.0.1:{server.Port}", "-servername", "localhost", "-tls1_3", "-brief");
        await RequestAsync(client, $"/bytes/{Size}", close: false);
        await ReceiveAsync(client);

        for (int i = 1; i <= 2; i++)
        {
            await OpenSslProgram.UpdateSendKeyAsync(client, request: true);
            try
            {
                await RequestAsync(client, $"/bytes/{Size}", close: false);
            }
            catch (IOException) when (!goesOn)
            {
                // s_client has already exited.
            }

            if (!goesOn)
            {
                Assert.Equal(0, await client.Output.ReadAsync(new byte[1]).InTime("the end of the connection"));
                await client.ExitAsync();
                return;
            }

            await ReceiveAsync(client);
            if (mode == TlsMode.Kernel)
            {
                Assert.Equal(i, TlsStatistics.Read().SendRekeyOk - before.SendRekeyOk);
                Assert.Equal(i, TlsStatistics.Read().ReceiveRekeyOk - before.ReceiveRekeyOk);
            }
        }

        client.Input.Close();
        await client.ExitAsync();
        server.AssertConnections(1, SslProtocols.Tls13);
    }

    /// <summary>
    /// Sends the request in one piece: a line that begins with one of s_client's commands must not come first.
    /// </summary>
    private static async Task RequestAsync(ExternalProgram client, string path, bool close)
    {
        await client.Input.WriteAsync(Encoding.ASCII.GetBytes(
            $"GET {path} HTTP/1.1\r\nHost: localhost\r\n{(close ? "Connection: close\r\n" : "")}\r\n"));
        await client.Input.FlushAsync();
    }

    private static async Task ReceiveAsync(ExternalProgram client, string header = "")
    {
        string head = await client.OutputUpToAsync("\r\n\r\n");
        Assert.Contains("HTTP/1.1 200 OK\r\n", head, StringComparison.Ordinal);
        Assert.Contains(header, head, StringComparison.Ordinal);
        await Pattern.ReceiveAsync(client.Output, Size).InTime("the body");
    }
}
