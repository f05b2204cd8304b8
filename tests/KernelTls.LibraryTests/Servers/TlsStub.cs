using System.Collections.Concurrent;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>Represents a server over TLS that is a part of the tests. Its end of the connections is woven.</summary>
internal abstract class TlsStub : IAsyncDisposable
{
    private readonly ReservedPort _port = new();
    private readonly ConcurrentDictionary<TcpClient, Task> _connections = new();
    private TcpListener? _listener;
    private Task _accepting = Task.CompletedTask;

    public int Port => _port.Number;

    /// <summary>Gets the options of each connection.</summary>
    protected abstract SslServerAuthenticationOptions Options { get; }

    public void Start()
    {
        _listener = new TcpListener(IPAddress.Loopback, Port);
        _listener.Start();
        _accepting = AcceptAsync(_listener);
    }

    /// <summary>Ends the server and all its connections.</summary>
    public async Task StopAsync()
    {
        _listener?.Stop();
        await _accepting.InTime("the listener's end");
        foreach ((TcpClient connection, Task serving) in _connections)
        {
            connection.Dispose();
            await serving.InTime("a connection's end");
        }

        _connections.Clear();
    }

    public async ValueTask DisposeAsync()
    {
        await StopAsync();
        _port.Dispose();
    }

    /// <summary>Receives one message, and answers it. Returns <see langword="false"/> at the end of the stream.</summary>
    protected abstract Task<bool> AnswerAsync(SslStream stream);

    private async Task AcceptAsync(TcpListener listener)
    {
        try
        {
            while (true)
            {
                TcpClient connection = await listener.AcceptTcpClientAsync();
                connection.NoDelay = true;
                _connections[connection] = ServeAsync(connection);
            }
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
        }
    }

    private async Task ServeAsync(TcpClient connection)
    {
        try
        {
            await using SslStream tls = new(connection.GetStream());
            await tls.AuthenticateAsServerAsync(Options);
            while (await AnswerAsync(tls))
            {
            }
        }
        catch (Exception e) when (e is IOException or ObjectDisposedException)
        {
        }
    }
}
