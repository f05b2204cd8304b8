using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests a key update that the application requests while only a part of a handshake message from the peer has arrived.
/// </summary>
/// <remarks>
/// OpenSSL cannot send one then, and nothing else must be lost. The message is a ticket that contains the client's
/// certificate, in records of 512 bytes.
/// </remarks>
public class HalfMessageTests
{
    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task An_update_in_the_midst_of_a_message_fails_and_the_connection_goes_on(TlsMode mode)
    {
        Assert.SkipUnless(mode != TlsMode.Kernel || KtlsPlatform.Probe().CanRekey, "Keys cannot change in this kernel.");
        using TemporaryDirectory directory = new();
        (ExternalProgram server, int port) = await OpenSslProgram.ServeAsync(
            Certificates.Ecdsa, directory, SslProtocols.Tls13, "-Verify", "1", "-max_send_frag", "512", "-num_tickets", "1");
        using ExternalProgram _ = server;
        using TicketRelay relay = await TicketRelay.ConnectAsync(port);
        await using KtlsStream client = (KtlsStream)Modes.Create(mode, new NetworkStream(relay.Client, ownsSocket: true));
        SslClientAuthenticationOptions options = Handshakes.ClientOptions(SslProtocols.Tls13);
        options.ClientCertificateContext = Certificates.ClientContext;
        options.AllowTlsResume = true;
        await client.HandshakeAsClientAsync(options).InTime("the handshake");
        await relay.FirstPassed.InTime("the first record behind the handshake");

        // The read processes the record that has arrived, and waits for the next.
        client.ReadTimeout = (int)Limits.Absence.TotalMilliseconds;
        await Assert.ThrowsAsync<IOException>(() => Limits.Blocking(() => client.Read(new byte[100])).InTime());
        await Assert.ThrowsAsync<IOException>(() => client.UpdateSendKeyAsync(requestPeerUpdate: false).InTime("a key update that cannot be"));

        // Once a read has processed the rest, updates are possible. Until then OpenSSL writes nothing, on SslStream
        // either.
        byte[] answer = new byte[6];
        client.ReadTimeout = Timeout.Infinite;
        Task reading = client.ReadExactlyAsync(answer).AsTask();
        relay.Release();
        await UpdateAsync(client);
        await client.WriteAsync("hello\n"u8.ToArray()).InTime("a write under the new key");
        await reading.InTime("the answer");
        Assert.Equal("olleh\n"u8.ToArray(), answer);
    }

    /// <summary>Tries until the read has processed the message. Each failure leaves the connection unchanged.</summary>
    private static async Task UpdateAsync(KtlsStream client)
    {
        using PeriodicTimer timer = new(TimeSpan.FromMilliseconds(20));
        for (long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds; ;)
        {
            try
            {
                await client.UpdateSendKeyAsync(requestPeerUpdate: false).InTime("a key update");
                return;
            }
            catch (IOException e) when (e.Message.Contains("Only a part of a handshake message", StringComparison.Ordinal))
            {
                Assert.True(Environment.TickCount64 < deadline, $"Waited {Limits.Wait.TotalSeconds} s for the rest of the message to be read.");
                await timer.WaitForNextTickAsync();
            }
        }
    }

    /// <summary>Holds what the server sends after the first record that follows the client's last flight.</summary>
    private sealed class TicketRelay : IDisposable
    {
        private const int HeaderSize = 5;
        private const byte ChangeCipherSpec = 20;

        private readonly SocketPair _near;
        private readonly Socket _far;
        private readonly TaskCompletionSource _firstPassed = new(TaskCreationOptions.RunContinuationsAsynchronously);
        private readonly TaskCompletionSource _released = new(TaskCreationOptions.RunContinuationsAsynchronously);
        private volatile bool _clientFinished;

        private TicketRelay(SocketPair near, Socket far)
        {
            (_near, _far) = (near, far);
            _ = PassAsync(near.Server, far, fromClient: true);
            _ = PassAsync(far, near.Server, fromClient: false);
        }

        public Socket Client => _near.Client;

        public Task FirstPassed => _firstPassed.Task;

        public static async Task<TicketRelay> ConnectAsync(int port)
        {
            Socket far = new(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
            await far.ConnectAsync("127.0.0.1", port).InTime("a connection to the server");
            return new TicketRelay(await SocketPair.ConnectAsync(), far);
        }

        public void Release() => _released.TrySetResult();

        public void Dispose()
        {
            _released.TrySetResult();
            _near.Dispose();
            _far.Dispose();
        }

        private async Task PassAsync(Socket from, Socket to, bool fromClient)
        {
            try
            {
                using NetworkStream input = new(from);
                using NetworkStream output = new(to);
                byte[] header = new byte[HeaderSize];
                while (true)
                {
                    await input.ReadExactlyAsync(header);
                    byte[] body = new byte[(header[3] << 8) | header[4]];
                    await input.ReadExactlyAsync(body);
                    bool isTicket = !fromClient && _clientFinished;

                    // The server answers the client's last flight, which begins with its ChangeCipherSpec, with the
                    // ticket.
                    _clientFinished |= fromClient && header[0] == ChangeCipherSpec;
                    if (isTicket && _firstPassed.Task.IsCompleted)
                    {
                        await _released.Task;
                    }

                    await output.WriteAsync((byte[])[.. header, .. body]);
                    if (isTicket)
                    {
                        _firstPassed.TrySetResult();
                    }
                }
            }
            catch (Exception e) when (e is IOException or ObjectDisposedException)
            {
                // One end has closed the connection.
                to.Dispose();
            }
        }
    }
}
