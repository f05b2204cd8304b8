using System.Buffers;
using System.IO.Pipelines;
using System.Net;
using System.Net.Sockets;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Transport;

/// <summary>
/// An accepted connection that does no I/O yet. Whoever uses <see cref="Transport"/> first makes it the stock transport's
/// connection; the TLS middleware takes the socket instead, so that nothing has been read from it when OpenSSL shakes hands.
/// </summary>
/// <remarks>
/// States: Waiting → Stock (its I/O is the stock connection's) | Taken (its I/O is the TLS stream's), either for good. Abort and
/// DisposeAsync in Waiting go through Stock. Thread-safe: Abort, ConnectionClosed, and DisposeAsync against Abort.
/// </remarks>
internal sealed class DeferredConnection :
    ConnectionContext,
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

    /// <summary>The first use starts the stock transport's I/O.</summary>
    public override IDuplexPipe Transport
    {
        get => _transport ??= Start().Transport;
        set
        {
            // Whoever wraps the bytes without having looked at them goes on doing so.
            if (!_taken)
            {
                Start();
            }

            _transport = value;
        }
    }

    public Socket Socket => _socket;

    /// <summary>As <see cref="Transport"/>.</summary>
    public MemoryPool<byte> MemoryPool => _pool ??= Start().Features.Get<IMemoryPoolFeature>()!.MemoryPool;

    /// <summary>Why the connection was ended from this side; null while it was not.</summary>
    public Exception? AbortReason => _abortReason;

    public bool WaitForData => _listener.WaitForData;

    /// <summary>A step of ours has seen the connection on its way to TLS, and said what there was to say.</summary>
    public static void NoteSeen(ConnectionContext context)
    {
        if (context is DeferredConnection connection)
        {
            connection._seen = true;
        }
    }

    /// <summary>False: its I/O has started, or it was aborted, and it stays the stock transport's.</summary>
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

    /// <summary>Kestrel passes null where the peer has gone.</summary>
    public override void Abort(ConnectionAbortedException? abortReason)
    {
        bool taken;
        lock (_lock)
        {
            taken = _taken;
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
    /// Ends the connection hard, as a failed send or an abort ends the stock one: what is under way is lost. Without a reason,
    /// which is Kestrel's answer to a peer that has gone, what is under way may still arrive.
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
        if (reason is null)
        {
            _socket.Dispose();
        }
        else
        {
            _socket.Close(timeout: 0);
        }

        FireConnectionClosed();
    }

    /// <summary>The peer is gone, or the connection is disposed: <see cref="ConnectionClosed"/> says so, from another thread.</summary>
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
                _listener.NoteStockTls();
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
                throw new InvalidOperationException("The TLS handshake of this connection is under way: it has no transport yet.");
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
