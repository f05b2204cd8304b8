using System.Collections.Concurrent;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;

namespace KernelTls.Demo.Server;

/// <summary>
/// An HTTPS server for one file, over <see cref="KtlsStream"/>, on a port of 127.0.0.1 that the system chooses. Not a web
/// server for anything else: HTTP/1.1, one path, GET and HEAD.
/// </summary>
internal sealed class FileServer : IAsyncDisposable
{
    public const string Path = "/file";

    private const int ConnectionLimit = 256;
    private static readonly TimeSpan s_drainLimit = TimeSpan.FromSeconds(10);

    private readonly PublishedFile _file;
    private readonly SslServerAuthenticationOptions _options;
    private readonly Socket _listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
    private readonly CancellationTokenSource _draining = new();
    private readonly CancellationTokenSource _aborted = new();
    private readonly SemaphoreSlim _slots = new(ConnectionLimit);
    private readonly ConcurrentDictionary<Task, bool> _running = new();
    private readonly List<ConnectionFacts> _connections = [];
    private readonly ConcurrentQueue<string> _failures = [];
    private readonly Task _accepting;

    public FileServer(PublishedFile file, SslStreamCertificateContext certificate, SslProtocols protocol)
    {
        _file = file;
        _options = new SslServerAuthenticationOptions
        {
            ServerCertificateContext = certificate,
            EnabledSslProtocols = protocol,
            ApplicationProtocols = [SslApplicationProtocol.Http11],
            AllowRenegotiation = false,
        };
        _listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        _listener.Listen();
        Address = new Uri($"https://localhost:{((IPEndPoint)_listener.LocalEndPoint!).Port}{Path}");
        _accepting = AcceptAsync();
    }

    /// <summary>Where the file is.</summary>
    public Uri Address { get; }

    /// <summary>The connections whose handshake succeeded, in that order.</summary>
    public IReadOnlyList<ConnectionFacts> Connections
    {
        get
        {
            lock (_connections)
            {
                return [.. _connections];
            }
        }
    }

    /// <summary>Takes no more connections and waits for the end of those there are.</summary>
    /// <exception cref="DemoFailedException">A connection failed, now or before.</exception>
    public async Task StopAsync(CancellationToken cancellationToken)
    {
        await _draining.CancelAsync();
        await _accepting.WaitAsync(cancellationToken);
        try
        {
            await Task.WhenAll(_running.Keys).WaitAsync(s_drainLimit, cancellationToken);
        }
        catch (TimeoutException)
        {
            throw new DemoFailedException(
                $"the server: {_running.Count} connections have not ended after {s_drainLimit.TotalSeconds} s");
        }

        if (_failures.TryDequeue(out string? failure))
        {
            throw new DemoFailedException($"the server: {failure}");
        }
    }

    public async ValueTask DisposeAsync()
    {
        await _draining.CancelAsync();
        await _aborted.CancelAsync();
        _listener.Dispose();
        await _accepting;
        await Task.WhenAll(_running.Keys);
        _slots.Dispose();
        _aborted.Dispose();
        _draining.Dispose();
    }

    private async Task AcceptAsync()
    {
        try
        {
            while (true)
            {
                await _slots.WaitAsync(_draining.Token);
                Start(await _listener.AcceptAsync(_draining.Token));
            }
        }
        catch (OperationCanceledException)
        {
            _listener.Dispose();
        }
        catch (SocketException e)
        {
            _failures.Enqueue($"cannot accept connections any more: {e.Message}");
            _listener.Dispose();
        }
    }

    private void Start(Socket socket)
    {
        Task connection = RunAsync(socket);
        _running[connection] = true;
        connection.ContinueWith(
            ended => _running.TryRemove(ended, out _),
            CancellationToken.None,
            TaskContinuationOptions.ExecuteSynchronously,
            TaskScheduler.Default);
    }

    private async Task RunAsync(Socket socket)
    {
        try
        {
            socket.NoDelay = true;
            await using FileConnection connection = new(socket, _file, _draining.Token, _aborted.Token);
            await connection.RunAsync(_options, Add);
        }
        catch (Exception e)
        {
            // Whatever it was: the other connections go on, and StopAsync tells.
            _failures.Enqueue(e.InnerException is { } inner ? $"{e.Message} ({inner.Message})" : e.Message);
            socket.Dispose();
        }
        finally
        {
            _slots.Release();
        }
    }

    private void Add(ConnectionFacts facts)
    {
        lock (_connections)
        {
            _connections.Add(facts);
        }
    }
}
