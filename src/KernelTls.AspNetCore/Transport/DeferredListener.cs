using System.Buffers;
using System.Net;
using System.Net.Sockets;
using KernelTls.AspNetCore.Internals;
using KernelTls.IO;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Transport;

/// <summary>Accepts connections whose I/O starts on first use.</summary>
internal sealed class DeferredListener : IConnectionListener
{
    /// <summary>A little more than the time for which a client of HTTP/2 is let finish.</summary>
    private static readonly TimeSpan s_lingerLimit = TimeSpan.FromSeconds(2);

    private readonly SocketTransportOptions _options;
    private readonly IMemoryPoolFactory<byte>? _memory;
    private readonly SocketConnectionContextFactory _stock;
    private readonly ILogger<DeferredListener> _logger;
    private readonly Action<EndPoint> _stockTlsSeen;
    private readonly Socket _socket;
    private readonly Lazy<MemoryPool<byte>[]> _pools;
    private uint _nextPool;
    private bool _stockTls;

    /// <summary>Initializes a new instance of the <see cref="DeferredListener"/> class and begins to listen.</summary>
    /// <param name="endpoint">The endpoint to listen on.</param>
    /// <param name="options">The options of the default transport.</param>
    /// <param name="memory">The factory of the pools, or <see langword="null"/> to use the shared pool.</param>
    /// <param name="loggers">The factory of the loggers.</param>
    /// <param name="stockTlsSeen">
    /// The callback that is called once, if Kestrel's HTTPS middleware served a connection that no middleware of this
    /// package saw.
    /// </param>
    /// <exception cref="AddressInUseException">The address is in use.</exception>
    public DeferredListener(
        EndPoint endpoint,
        SocketTransportOptions options,
        IMemoryPoolFactory<byte>? memory,
        ILoggerFactory loggers,
        Action<EndPoint> stockTlsSeen)
    {
        _stockTlsSeen = stockTlsSeen;
        _options = options;
        _memory = memory;
        _logger = loggers.CreateLogger<DeferredListener>();
        try
        {
            _socket = options.CreateBoundListenSocket(endpoint);
        }
        catch (SocketException e) when (e.SocketErrorCode == SocketError.AddressAlreadyInUse)
        {
            throw new AddressInUseException(e.Message, e);
        }

        // The category of the default transport, which does the work on a plain endpoint.
        _stock = new SocketConnectionContextFactory(
            KestrelInternals.ConnectionOptions(options),
            loggers.CreateLogger("Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets"));
        _pools = new Lazy<MemoryPool<byte>[]>(CreatePools);
        EndPoint = _socket.LocalEndPoint!;
        _socket.Listen(options.Backlog);
    }

    public EndPoint EndPoint { get; }

    /// <summary>Gets a value that indicates whether a connection that waits for data holds no receive buffer.</summary>
    public bool WaitForData => _options.WaitForDataBeforeAllocatingBuffer;

    /// <summary>Gets the number of flushed but unsent bytes from which a flush waits, or 0 for never.</summary>
    public long MaxWriteBufferSize => _options.MaxWriteBufferSize ?? 0;

    public async ValueTask<ConnectionContext?> AcceptAsync(CancellationToken cancellationToken = default)
    {
        while (true)
        {
            Socket? socket = null;
            try
            {
                socket = await _socket.AcceptAsync(cancellationToken).ConfigureAwait(false);
                if (socket.LocalEndPoint is IPEndPoint)
                {
                    socket.NoDelay = _options.NoDelay;
                }

                return new DeferredConnection(socket, this, _logger);
            }
            catch (ObjectDisposedException)
            {
                return null;
            }
            catch (SocketException e) when (e.SocketErrorCode == SocketError.OperationAborted)
            {
                return null;
            }
            catch (SocketException)
            {
                // The client disconnected while the connection was in the backlog.
                socket?.Dispose();
                _logger.AcceptReset();
            }
        }
    }

    /// <summary>Starts the I/O of the default transport.</summary>
    public ConnectionContext Start(Socket socket) => _stock.Create(socket);

    /// <summary>
    /// Reports once that Kestrel's HTTPS middleware served a connection without a reported reason: this package's middleware
    /// does not precede it.
    /// </summary>
    public void ReportStockTls()
    {
        if (!Interlocked.Exchange(ref _stockTls, true))
        {
            _stockTlsSeen(EndPoint);
        }
    }

    /// <summary>
    /// Returns the pool for a TLS connection. As many connections share one as on the default transport.
    /// </summary>
    public MemoryPool<byte> NextPool()
    {
        MemoryPool<byte>[] pools = _pools.Value;
        return pools[Interlocked.Increment(ref _nextPool) % (uint)pools.Length];
    }

    public ValueTask UnbindAsync(CancellationToken cancellationToken = default)
    {
        _socket.Dispose();
        return ValueTask.CompletedTask;
    }

    /// <summary>
    /// Also waits for connections that remain open after their end (<see cref="LingeringClose"/>), because the process may exit next,
    /// which would close them with unread data.
    /// </summary>
    public async ValueTask DisposeAsync()
    {
        _socket.Dispose();
        _stock.Dispose();
        if (_pools.IsValueCreated)
        {
            Array.ForEach(_pools.Value, p => p.Dispose());
        }

        await LingeringClose.WhenAllEnded().WaitAsync(s_lingerLimit).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
    }

    private MemoryPool<byte>[] CreatePools()
    {
        MemoryPool<byte>[] pools = new MemoryPool<byte>[Math.Max(_options.IOQueueCount, 1)];
        for (int i = 0; i < pools.Length; i++)
        {
            pools[i] = _memory?.Create(new MemoryPoolOptions { Owner = "kestrel" }) ?? MemoryPool<byte>.Shared;
        }

        return pools;
    }
}
