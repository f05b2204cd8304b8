using System.Net.Sockets;

namespace KernelTls.Tests;

/// <summary>
/// Keeps the streams of a case open until its last connection has ended. SslStream keeps an SSL_CTX, and with it the tickets' keys
/// and the client's sessions, only while a stream uses it: cases that run at the same time could end the sessions of this one.
/// </summary>
internal sealed class SurfaceStreams : IAsyncDisposable
{
    private readonly Stack<Stream> _streams = [];

    public void Keep(Stream stream) => _streams.Push(stream);

    /// <summary>Closes this end's half of a connection whose stream stays open.</summary>
    public static void End(Socket socket)
    {
        try
        {
            socket.Shutdown(SocketShutdown.Send);
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            // The connection has failed.
        }
    }

    /// <summary>Receives until the other end closes.</summary>
    public static async Task ToEndAsync(Socket socket)
    {
        while (await socket.ReceiveAsync(new byte[16 * 1024]) > 0)
        {
        }
    }

    public async ValueTask DisposeAsync()
    {
        while (_streams.TryPop(out Stream? stream))
        {
            await stream.DisposeAsync();
        }
    }
}
