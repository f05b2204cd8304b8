using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

#pragma warning disable CA1416 // Linux

/// <summary>
/// Tests a client whose LocalCertificateSelectionCallback waits for the server's request, which may come after the
/// handshake (RFC 8446, section 4.6.2).
/// </summary>
public class PostHandshakeCallbackTests
{
    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    /// <summary>
    /// A callback that has returned no certificate before the handshake is called once more, and its answer holds for
    /// all later requests.
    /// </summary>
    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task A_callback_chooses_when_the_server_asks(TlsMode mode)
    {
        foreach (string when in new[] { "late", "in the handshake", "never" })
        {
            await SideBySide.RunAsync(mode, async each =>
            {
                Calls calls = new();
                await using Meeting meeting = await new Meeting(each, TlsMode.Stock, SslProtocols.Tls13)
                {
                    ClientSelection = (_, host, own, remote, issuers) =>
                    {
                        calls.Add(host, own.Count, remote, issuers.Length);
                        return remote is null || when == "never" ? null! : Certificates.Client;
                    },
                    ServerValidation = (_, _, _, _) => true,
                    ServerOptions = s => s.ClientCertificateRequired = when == "in the handshake",
                }.SucceedAsync();
                string before = Describe(meeting);
                Task<int> reading = meeting.Client.ReadAsync(new byte[1]).AsTask();
                if (when != "in the handshake")
                {
                    await meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime("the client's certificate");
                }

                await meeting.Server.WriteAsync(new byte[1]).InTime("a byte of the server");
                Assert.Equal(1, await reading.InTime("the byte of the server"));
                string after = Describe(meeting);
                await Task.WhenAll(Pattern.SendAsync(meeting.Client, 1000), Pattern.ReceiveAsync(meeting.Server, 1000)).InTime("data of the client");
                return $"{before}, {after}, {calls}";
            }, when);
        }

        static string Describe(Meeting meeting) =>
            $"{meeting.Client.LocalCertificate?.GetCertHashString()} {meeting.Server.RemoteCertificate?.GetCertHashString()}";
    }
}
