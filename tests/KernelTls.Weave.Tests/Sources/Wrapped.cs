// Puts a stream between its SslStream and the socket: one that is known by name (this program is compiled as MailKit), and another one.
// Its arguments are what to do, and a certificate.
using System;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

public static class Sample
{
    public static async Task Main(string[] arguments)
    {
        using Listener events = new();
        using X509Certificate2 certificate = X509CertificateLoader.LoadPkcs12FromFile(arguments[1], null);
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        using TcpClient connection = new();
        await connection.ConnectAsync((IPEndPoint)listener.LocalEndpoint);
        using TcpClient accepted = await listener.AcceptTcpClientAsync();
        await using SslStream server = new(accepted.GetStream());
        Task served = server.AuthenticateAsServerAsync(certificate);

        Stream wrapper = arguments[0] == "unknown" ? new Unknown(connection.Client) : new MailKit.Net.NetworkStream(connection.Client);
        await using Mine client = new(wrapper);
        await client.AuthenticateAsClientAsync(new SslClientAuthenticationOptions { TargetHost = "localhost" });
        await served;
        switch (arguments[0])
        {
            case "timeout":
                client.ReadTimeout = 300;
                await PrintAsync(async () => await client.ReadAsync(new byte[1]));
                Console.WriteLine($"connected: {connection.Connected}");
                break;
            case "cancellation":
                client.ReadTimeout = 60_000;
                using (CancellationTokenSource source = new(300))
                {
                    await PrintAsync(async () => await client.ReadAsync(new byte[1], source.Token));
                }

                break;
            default:
                await client.WriteAsync(Encoding.ASCII.GetBytes("ping"));
                byte[] ping = new byte[4];
                await server.ReadExactlyAsync(ping);
                Console.WriteLine(Encoding.ASCII.GetString(ping));
                break;
        }
    }

    private static async Task PrintAsync(Func<Task> action)
    {
        try
        {
            await action();
            Console.WriteLine("done");
        }
        catch (Exception e)
        {
            Console.WriteLine($"{e.GetType().Name} {e.InnerException?.GetType().Name}");
        }
    }

    private sealed class Mine(Stream inner) : SslStream(inner, false, (_, _, _, _) => true)
    {
    }

    private sealed class Unknown(Socket socket) : MailKit.Net.NetworkStream(socket)
    {
    }

    private sealed class Listener : EventListener
    {
        protected override void OnEventSourceCreated(EventSource source)
        {
            if (source.Name == "KernelTls")
            {
                EnableEvents(source, EventLevel.Informational);
            }
        }

        protected override void OnEventWritten(EventWrittenEventArgs e)
        {
            if (e.EventName is "HandshakeCompleted" or "Fallback" && e.Payload[0] is false)
            {
                Console.WriteLine($"{e.EventName}: {string.Join(' ', e.Payload.Skip(e.EventName == "Fallback" ? 1 : 3))}");
            }
        }
    }
}

namespace MailKit.Net
{
    /// <summary>Limits the time of asynchronous reads, and disconnects after one that was cancelled.</summary>
    internal class NetworkStream(Socket socket) : Stream
    {
        public Socket Socket { get; private set; } = socket;

        public override bool CanRead => Socket.Connected;

        public override bool CanWrite => Socket.Connected;

        public override bool CanSeek => false;

        public override bool CanTimeout => Socket.Connected;

        public override long Length => throw new NotSupportedException();

        public override long Position { get => throw new NotSupportedException(); set => throw new NotSupportedException(); }

        public override int ReadTimeout { get => Socket.ReceiveTimeout; set => Socket.ReceiveTimeout = value; }

        public override int WriteTimeout { get => Socket.SendTimeout; set => Socket.SendTimeout = value; }

        public override void Flush()
        {
        }

        public override int Read(byte[] buffer, int offset, int count) => Socket.Receive(buffer, offset, count, SocketFlags.None);

        public override void Write(byte[] buffer, int offset, int count) => Socket.Send(buffer, offset, count, SocketFlags.None);

        public override async Task<int> ReadAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken)
        {
            using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
            limit.CancelAfter(ReadTimeout > 0 ? ReadTimeout : Timeout.Infinite);
            try
            {
                return await Socket.ReceiveAsync(buffer.AsMemory(offset, count), SocketFlags.None, limit.Token);
            }
            catch (OperationCanceledException)
            {
                Socket.Dispose();
                if (cancellationToken.IsCancellationRequested)
                {
                    throw;
                }

                throw new TimeoutException();
            }
        }

        public override Task WriteAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken) =>
            Socket.SendAsync(buffer.AsMemory(offset, count), SocketFlags.None, cancellationToken).AsTask();

        public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

        public override void SetLength(long value) => throw new NotSupportedException();

        protected override void Dispose(bool disposing)
        {
            Socket.Dispose();
            base.Dispose(disposing);
        }
    }
}
