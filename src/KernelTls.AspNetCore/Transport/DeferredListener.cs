using System.Buffers;
using System.Net;
using System.Net.Sockets;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Transport;

/// <summary>Accepts connections whose I/O starts when somebody uses it.</summary>
internal sealed class DeferredListener : IConnectionListener
{
    private readonly SocketTransportOptions _options;
    private readonly IMemoryPoolFactory<byte>? _memory;
    private readonly SocketConnectionContextFactory _stock;
    private readonly ILogger<DeferredListener> _logger;
    private readonly Action<EndPoint> _stockTlsSeen;
    private readonly Socket _socket;
    private readonly Lazy<MemoryPool<byte>[]> _pools;
    private uint _nextPool;
    private bool _stockTls;

    /// <param name="endpoint">Where to listen.</param>
    /// <param name="options">The stock transport's options.</param>
    /// <param name="memory">Makes the pools; <see langword="null"/>: the shared one.</param>
    /// <param name="loggers">Makes the loggers.</param>
    /// <param name="stockTlsSeen">Told once, where the stock TLS has served a connection that no step of ours saw.</param>
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

        // The name that the stock transport logs under: on a plain endpoint that is who does the work.
        _stock = new SocketConnectionContextFactory(
            KestrelInternals.ConnectionOptions(options),
            loggers.CreateLogger("Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets"));
        _pools = new Lazy<MemoryPool<byte>[]>(CreatePools);
        EndPoint = _socket.LocalEndPoint!;
        _socket.Listen(options.Backlog);
    }

    public EndPoint EndPoint { get; }

    /// <summary>A connection that waits holds no memory to receive into.</summary>
    public bool WaitForData => _options.WaitForDataBeforeAllocatingBuffer;

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
                // The client went away while it waited in the backlog.
                socket?.Dispose();
                _logger.AcceptReset();
            }
        }
    }

    /// <summary>Starts the I/O of the stock transport.</summary>
    public ConnectionContext Start(Socket socket) => _stock.Create(socket);

    /// <summary>The stock TLS has served a connection, and nobody said why: our step is not in front of it.</summary>
    public void NoteStockTls()
    {
        if (!Interlocked.Exchange(ref _stockTls, true))
        {
            _stockTlsSeen(EndPoint);
        }
    }

    /// <summary>The pool of a TLS connection; as many share one as on the stock transport.</summary>
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

    public ValueTask DisposeAsync()
    {
        _socket.Dispose();
        _stock.Dispose();
        if (_pools.IsValueCreated)
        {
            Array.ForEach(_pools.Value, p => p.Dispose());
        }

        return ValueTask.CompletedTask;
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
