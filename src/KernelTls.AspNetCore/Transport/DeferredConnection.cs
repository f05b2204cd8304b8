using System.Buffers;
using System.IO.Pipelines;
using System.Net;
using System.Net.Sockets;
using KernelTls.IO;
using KernelTls.Interop;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Transport;

/// <summary>Represents an accepted connection that does no I/O yet.</summary>
/// <remarks>
/// <para>
/// The first use of <see cref="Transport"/> turns it into a connection of the default transport. The TLS middleware
/// takes the socket instead, so that nothing has been read from it when OpenSSL begins the handshake.
/// </para>
/// <para>
/// States: Waiting → Stock (the default transport does the I/O) | Taken (the TLS stream does the I/O); both are final.
/// Abort and DisposeAsync in Waiting pass through Stock. Thread-safe: Abort, ConnectionClosed, and DisposeAsync against
/// Abort.
/// </para>
/// </remarks>
internal sealed class DeferredConnection :
    ConnectionContext,
    IConnectionEndPointFeature,
    IConnectionIdFeature,
    IConnectionItemsFeature,
    IConnectionLifetimeFeature,
    IConnectionSocketFeature,
    IConnectionTransportFeature,
    IMemoryPoolFeature
{
    private readonly Socket _socket;
    private readonly DeferredListener _listener;
    private readonly ILogger _logger;
    private readonly CancellationTokenSource _closed = new();
    private readonly TaskCompletionSource _closedCallbacks = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly Lock _lock = new();
    private ConnectionContext? _stock;
    private MemoryPool<byte>? _pool;
    private IDuplexPipe? _transport;
    private string? _id;
    private IDictionary<object, object?>? _items;
    private volatile Exception? _abortReason;
    private Exception? _abortedInFront;
    private bool _taken;
    private bool _seen;
    private bool _closing;

    public DeferredConnection(Socket socket, DeferredListener listener, ILogger logger)
    {
        _socket = socket;
        _listener = listener;
        _logger = logger;
        LocalEndPoint = socket.LocalEndPoint;
        RemoteEndPoint = socket.RemoteEndPoint;
        ConnectionClosed = _closed.Token;
        if (RuntimeBehavior.HasEndPointFeature)
        {
            Features.Set<IConnectionEndPointFeature>(this);
        }

        Features.Set<IConnectionIdFeature>(this);
        Features.Set<IConnectionItemsFeature>(this);
        Features.Set<IConnectionLifetimeFeature>(this);
        Features.Set<IConnectionSocketFeature>(this);
        Features.Set<IConnectionTransportFeature>(this);
        Features.Set<IMemoryPoolFeature>(this);
    }

    public override IFeatureCollection Features { get; } = new FeatureCollection(initialCapacity: 24);

    public override string ConnectionId
    {
        get => _id ??= ConnectionIds.Next();
        set => _id = value;
    }

    public override IDictionary<object, object?> Items
    {
        get => _items ??= new ConnectionItems();
        set => _items = value;
    }

    public override EndPoint? LocalEndPoint { get; set; }

    public override EndPoint? RemoteEndPoint { get; set; }

    public override CancellationToken ConnectionClosed { get; set; }

    /// <summary>Gets or sets the transport. The first use starts the I/O of the default transport.</summary>
    public override IDuplexPipe Transport
    {
        get => _transport ??= Start().Transport;
        set
        {
            // A middleware that wraps the transport without having read it must still get the connection's data.
            if (!_taken)
            {
                Start();
            }

            _transport = value;
        }
    }

    public Socket Socket => _socket;

    /// <summary>Gets the pool. The first use starts the I/O, as for <see cref="Transport"/>.</summary>
    public MemoryPool<byte> MemoryPool => _pool ??= Start().Features.Get<IMemoryPoolFeature>()!.MemoryPool;

    /// <summary>Gets the reason why this end aborted the connection, or null.</summary>
    public Exception? AbortReason => _abortReason;

    /// <summary>Gets the reason why the connection was aborted before <see cref="TryTakeSocket"/>, or null.</summary>
    public Exception? AbortedInFront
    {
        get
        {
            lock (_lock)
            {
                return _abortedInFront;
            }
        }
    }

    /// <summary>Gets or sets the last action before the connection is aborted: TLS sends an alert that is due.</summary>
    public Action? Aborting { get; set; }

    public bool WaitForData => _listener.WaitForData;

    public long MaxWriteBufferSize => _listener.MaxWriteBufferSize;

    /// <summary>
    /// Records that a middleware of this package has seen the connection on its way to TLS and has reported any fallback.
    /// </summary>
    public static void MarkSeen(ConnectionContext context)
    {
        if (context is DeferredConnection connection)
        {
            connection._seen = true;
        }
    }

    /// <summary>
    /// Takes the socket. Returns false if the I/O has started or the connection was aborted, in which case the default
    /// transport keeps it.
    /// </summary>
    public bool TryTakeSocket()
    {
        lock (_lock)
        {
            if (_stock is null && !_taken)
            {
                _taken = true;
                _pool = _listener.NextPool();
                return true;
            }

            return false;
        }
    }

    /// <summary>Aborts the connection. Kestrel passes null if the peer has disconnected.</summary>
    public override void Abort(ConnectionAbortedException? abortReason)
    {
        bool taken;
        lock (_lock)
        {
            taken = _taken;
            _abortedInFront ??= taken ? null : abortReason ?? new ConnectionAbortedException();
        }

        if (taken)
        {
            Fail(abortReason);
        }
        else
        {
            Start().Abort(abortReason!);
        }
    }

    /// <summary>
    /// Resets the connection, as the default transport does after a failed send or an abort: data in flight is lost.
    /// Without a reason, which Kestrel passes if the peer has disconnected, data in flight may still arrive.
    /// </summary>
    public void Fail(Exception? reason)
    {
        lock (_lock)
        {
            if (_abortReason is not null)
            {
                return;
            }

            _abortReason = reason ?? new ConnectionAbortedException("The client closed the connection.");
        }

        _logger.ConnectionAborted(ConnectionId, _abortReason.Message);
        Aborting?.Invoke();
        if (reason is null)
        {
            _socket.Dispose();
        }
        else
        {
            // A wait holds the handle. .NET would then disconnect the socket, as kernel TLS cannot on every kernel.
            SocketReadiness.EndWaits(_socket.SafeHandle);
            _socket.Close(timeout: 0);
        }

        FireConnectionClosed();
    }

    /// <summary>
    /// Cancels <see cref="ConnectionClosed"/> on another thread, because the peer has disconnected or the connection is
    /// disposed.
    /// </summary>
    public void FireConnectionClosed()
    {
        lock (_lock)
        {
            if (_closing)
            {
                return;
            }

            _closing = true;
        }

        ThreadPool.UnsafeQueueUserWorkItem(static c => c.CancelClosed(), this, preferLocal: false);
    }

    public override async ValueTask DisposeAsync()
    {
        bool taken;
        lock (_lock)
        {
            taken = _taken;
        }

        if (taken)
        {
            _socket.Dispose();
            FireConnectionClosed();
        }
        else
        {
            if (!_seen && Features.Get<ITlsHandshakeFeature>() is not null)
            {
                _listener.ReportStockTls();
            }

            await Start().DisposeAsync().ConfigureAwait(false);
        }

        await _closedCallbacks.Task.ConfigureAwait(false);
        _closed.Dispose();
        await base.DisposeAsync().ConfigureAwait(false);
    }

    private ConnectionContext Start()
    {
        ConnectionContext stock;
        lock (_lock)
        {
            if (_taken)
            {
                throw new InvalidOperationException("The TLS handshake of this connection is in progress. The connection has no transport yet.");
            }

            if (_stock is not null)
            {
                return _stock;
            }

            stock = _listener.Start(_socket);
            stock.ConnectionId = ConnectionId;
            _stock = stock;
        }

        stock.ConnectionClosed.UnsafeRegister(static c => ((DeferredConnection)c!).CancelClosed(), this);
        return stock;
    }

    private void CancelClosed()
    {
        try
        {
            _closed.Cancel();
        }
        catch (AggregateException e)
        {
            _logger.ClosedCallbackFailed(ConnectionId, e);
        }

        _closedCallbacks.TrySetResult();
    }
}
