using System.IO.Pipelines;
using System.Net.Security;
using System.Runtime.InteropServices;
using KernelTls.AspNetCore.Transport;
using KernelTls.IO;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Provides the pipe that Kestrel's HTTP code reads from and writes to, over a TLS stream after its handshake.
/// </summary>
internal sealed class TlsTransport : IDuplexPipe, IAsyncDisposable
{
    /// <summary>
    /// The time limit for sending the rest to a client whose records could not be read. For any other client there is
    /// no limit, as on the default transport: only an abort ends the sending. The stream itself limits close_notify.
    /// </summary>
    private static readonly TimeSpan s_failedLimit = TimeSpan.FromSeconds(3);

    private readonly ServerStream _stream;
    private readonly DeferredConnection _connection;
    private readonly ILogger _logger;
    private readonly TlsInput _input;
    private readonly TlsPipeWriter _output;
    private readonly bool _isHttp2;
    private readonly PeerShutdownMonitor? _peer;

    // Between a client's close and the heartbeat nothing is pending on the socket, and Kestrel holds connections
    // weakly. Without this handle a request that waits for the notification would be collected.
    private readonly GCHandle _alive;
    private volatile bool _closing;
    private volatile bool _inputFailed;

    /// <summary>Initializes a new instance of the <see cref="TlsTransport"/> class.</summary>
    /// <param name="stream">The stream.</param>
    /// <param name="connection">The connection, which owns the stream's socket.</param>
    /// <param name="logger">The logger for failures.</param>
    public TlsTransport(ServerStream stream, DeferredConnection connection, ILogger logger)
    {
        _stream = stream;
        _connection = connection;
        _logger = logger;
        _output = new TlsPipeWriter(stream, connection.MemoryPool, connection.MaxWriteBufferSize, OnSendFailed);
        InputPool pool = new(connection.MemoryPool);
        _input = new TlsInput(stream, connection, pool, _output, OnFailed);
        stream.Input = _input;
        connection.Aborting = stream.SendAlert;
        Input = PipeReader.Create(
            _input,
            new StreamPipeReaderOptions(
                pool,
                bufferSize: InputPool.LargestRecord,
                minimumReadSize: InputPool.Block,
                leaveOpen: true,
                useZeroByteReads: connection.WaitForData));
        Output = _output;
        _isHttp2 = stream.NegotiatedApplicationProtocol == SslApplicationProtocol.Http2;
        if (_isHttp2)
        {
            connection.Features.Set(new ReusedStreams(connection.ConnectionId, logger));
        }
        else
        {
            // HTTP/2 responses share the pipe of the connection, and their data is framed.
            connection.Features.Set(new ResponseFiles(_output, connection.ConnectionId, logger));
        }

        connection.Features.Get<IConnectionHeartbeatFeature>()?.OnHeartbeat(static input => ((TlsInput)input).OnHeartbeat(), _input);

        // Last, because both keep this object alive until it is disposed, which it is not if the constructor fails.
        _peer = WatchPeer();
        _alive = GCHandle.Alloc(this);
    }

    public PipeReader Input { get; }

    public PipeWriter Output { get; }

    /// <summary>
    /// Sends the remaining data, unless the connection was aborted. Disposing the stream then sends close_notify and, on
    /// HTTP/2, waits for the client's end.
    /// </summary>
    public async ValueTask DisposeAsync()
    {
        _closing = true;
        _peer?.Dispose();
        try
        {
            await _input.DisposeAsync().ConfigureAwait(false);
            await Input.CompleteAsync().ConfigureAwait(false);
            Task drained = _output.DrainAsync();
            if (_connection.AbortReason is null)
            {
                await drained.WaitAsync(_inputFailed ? s_failedLimit : Timeout.InfiniteTimeSpan).ConfigureAwait(false);
                if (_isHttp2 && !_inputFailed && !_input.HasEnded)
                {
                    // A client of HTTP/2 sends while it receives: a reset could cost it responses that it has not read yet.
                    _stream.LingerOnDispose(_connection.Socket);
                }
            }
        }
        catch (TimeoutException e)
        {
            // The client does not read the rest.
            _connection.Fail(e);
        }
        finally
        {
            _alive.Free();
        }
    }

    private PeerShutdownMonitor? WatchPeer()
    {
        try
        {
            return new PeerShutdownMonitor(_connection.Socket.SafeHandle, _input.OnPeerEnded);
        }
        catch (ObjectDisposedException)
        {
            // Aborted in the meantime.
            return null;
        }
    }

    private void OnFailed(Exception failure)
    {
        _inputFailed = true;
        if (!_closing)
        {
            _logger.ConnectionFailed(_connection.ConnectionId, failure);
        }

        _connection.FireConnectionClosed();
    }

    private void OnSendFailed(Exception failure)
    {
        _logger.ConnectionFailed(_connection.ConnectionId, failure);
        _connection.Fail(failure);
    }
}
