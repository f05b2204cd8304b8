using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text;

namespace KernelTls.Soak;

/// <summary>A client that misbehaves: it resets, stalls, closes half, forges records or sends garbage.</summary>
/// <remarks>
/// Its stream is the stock one, so that the forged bytes reach the socket unchanged. The data that it receives is not
/// verified; the server must tolerate it.
/// </remarks>
internal sealed class ChaosSoakClient(SoakContext context, int seed) : SoakClient(context, seed)
{
    private const int KindOfApplicationData = 23;

    protected override string Kind => "chaos";

    protected override async Task OperateAsync(CancellationToken limit)
    {
        bool isWeb = Random.Next(2) == 0;
        using Socket socket = await SoakContext.ConnectAsync(
            isWeb ? new IPEndPoint(IPAddress.Loopback, Context.Web.Port) : Context.Streams, limit);
        if (Random.Next(5) == 0)
        {
            await DisturbHandshakeAsync(socket, limit);
            return;
        }

        await using SslStream stream = new(new NetworkStream(socket), leaveInnerStreamOpen: true);
        await stream.AuthenticateAsClientAsync(
            Context.CreateClientOptions(Random.Next(2) == 0 ? SslProtocols.Tls12 : SslProtocols.Tls13), limit);
        try
        {
            await stream.WriteAsync(isWeb ? CreateRequest() : CreateHalfFrame(), limit);
            await DisturbAsync(socket, stream, limit);
        }
        catch (Exception e) when (e is IOException or SocketException && !limit.IsCancellationRequested)
        {
            // The server ended the connection, as it should.
        }
    }

    private async Task DisturbAsync(Socket socket, SslStream stream, CancellationToken limit)
    {
        switch (Random.Next(6))
        {
            case 0: // reset, with data in transit
                Reset(socket);
                break;
            case 1: // reset after some data
                await stream.ReadAtLeastAsync(new byte[20_000], 1 + Random.Next(20_000), throwOnEndOfStream: false, limit).AsTask()
                    .WaitAsync(TimeSpan.FromSeconds(2), limit).ContinueWith(_ => { }, TaskScheduler.Default);
                Reset(socket);
                break;
            case 2: // stall, while the server's send buffer is full
                await Task.Delay(TimeSpan.FromSeconds(1 + Random.Next(4)), limit);
                Reset(socket);
                break;
            case 3: // half-close without close_notify
                socket.Shutdown(SocketShutdown.Send);
                await DrainAsync(socket, limit);
                break;
            case 4: // close_notify within a frame, then read
                await stream.ShutdownAsync();
                await DrainAsync(socket, limit);
                break;
            default:
                await socket.SendAsync(Forge(), limit);
                socket.Shutdown(SocketShutdown.Send);
                await DrainAsync(socket, limit);
                break;
        }
    }

    /// <summary>Creates records that no peer with the keys would send.</summary>
    private byte[] Forge()
    {
        byte[] bytes = new byte[5 + 17 + Random.Next(200)];
        Random.NextBytes(bytes);
        (bytes[0], bytes[1], bytes[2]) = (KindOfApplicationData, 3, 3);
        (bytes[3], bytes[4]) = (0, (byte)(bytes.Length - 5));
        switch (Random.Next(6))
        {
            case 0:
                bytes[0] = (byte)Random.Next(256);
                break;
            case 1:
                bytes[1] = (byte)Random.Next(256);
                break;
            case 2:
                bytes[3] = 0xFF;
                break;
            case 3:
                bytes[4] = (byte)Random.Next(20);
                break;
            case 4: // a fatal alert in plaintext
                return [21, 3, 3, 0, 2, 2, 40];
            default: // a record that cannot be decrypted
                break;
        }

        return bytes;
    }

    private async Task DisturbHandshakeAsync(Socket socket, CancellationToken limit)
    {
        byte[] bytes = new byte[1 + Random.Next(600)];
        Random.NextBytes(bytes);
        if (Random.Next(2) == 0)
        {
            // The beginning of a ClientHello.
            new byte[] { 22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3 }.AsSpan(0, Math.Min(11, bytes.Length)).CopyTo(bytes);
        }

        await socket.SendAsync(bytes, limit);
        if (Random.Next(2) == 0)
        {
            Reset(socket);
            return;
        }

        socket.Shutdown(SocketShutdown.Send);
        await DrainAsync(socket, limit);
    }

    private byte[] CreateRequest() => Encoding.ASCII.GetBytes(Random.Next(2) == 0
        ? $"GET /bytes/{Payload.MaxSize} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        : $"POST /verify HTTP/1.1\r\nHost: localhost\r\nContent-Length: {Payload.MaxSize}\r\n\r\nand no more");

    private byte[] CreateHalfFrame()
    {
        byte[] frame = Frame.Create(Payload.Take(Random, 1 + Payload.ChooseSize(Random)).Span);
        return frame[..Random.Next(1, frame.Length)];
    }

    /// <summary>Reads until the server has closed its half as well.</summary>
    private static async Task DrainAsync(Socket socket, CancellationToken limit)
    {
        byte[] buffer = new byte[16 * 1024];
        try
        {
            while (await socket.ReceiveAsync(buffer, limit) > 0)
            {
                // The content does not matter.
            }
        }
        catch (SocketException)
        {
            // A reset is an end as well.
        }
    }

    private static void Reset(Socket socket)
    {
        socket.LingerState = new LingerOption(true, 0);
        socket.Dispose();
    }
}
