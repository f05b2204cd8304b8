using System.IO.Pipelines;
using System.Net.Security;
using System.Runtime.InteropServices;
using KernelTls.AspNetCore.Transport;
using KernelTls.IO;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tls;

/// <summary>The pipe that Kestrel's HTTP reads from and writes to, over a TLS stream that has shaken hands.</summary>
internal sealed class TlsTransport : IDuplexPipe, IAsyncDisposable
{
    /// <summary>Of data (RFC 8446, section 5.1).</summary>
    private const int LargestRecord = 1 << 14;

    /// <summary>For what is still to be sent when the application is through; the stream limits close_notify itself.</summary>
    private static readonly TimeSpan s_closeLimit = TimeSpan.FromSeconds(3);

    private readonly DeferredConnection _connection;
    private readonly ILogger _logger;
    private readonly TlsInput _input;
    private readonly TlsPipeWriter _output;
    private readonly PeerWatch? _peer;

    // Between a client's end and the heartbeat nothing is pending on the socket, and Kestrel holds connections weakly: a request
    // that waits to be told would be collected.
    private readonly GCHandle _alive;
    private volatile bool _closing;

    /// <param name="stream">The stream.</param>
    /// <param name="connection">The connection, whose socket is the stream's.</param>
    /// <param name="logger">Told of failures.</param>
    public TlsTransport(ServerStream stream, DeferredConnection connection, ILogger logger)
    {
        _connection = connection;
        _logger = logger;
        _input = new TlsInput(stream, connection, OnFailed);
        stream.Input = _input;
        _output = new TlsPipeWriter(stream, connection.MemoryPool, OnSendFailed);
        Input = PipeReader.Create(
            _input,
            new StreamPipeReaderOptions(
                pool: null, // the connection's has blocks of 4 KiB: four receives for a record
                bufferSize: LargestRecord,
                minimumReadSize: LargestRecord / 4,
                leaveOpen: true,
                useZeroByteReads: connection.WaitForData));
        Output = _output;
        if (stream.NegotiatedApplicationProtocol != SslApplicationProtocol.Http2)
        {
            // Many responses share the pipe of an HTTP/2 connection, and frames are around their bytes.
            connection.Features.Set(new ResponseFiles(_output, connection.ConnectionId, logger));
        }

        _peer = WatchPeer();
        connection.Features.Get<IConnectionHeartbeatFeature>()?.OnHeartbeat(static input => ((TlsInput)input).OnHeartbeat(), _input);

        // Last: what fails before it leaves nothing behind.
        _alive = GCHandle.Alloc(this);
    }

    public PipeReader Input { get; }

    public PipeWriter Output { get; }

    /// <summary>Sends what is left; the stream's disposal then sends close_notify.</summary>
    public async ValueTask DisposeAsync()
    {
        _closing = true;
        _peer?.Dispose();
        try
        {
            await _input.DisposeAsync().ConfigureAwait(false);
            await Input.CompleteAsync().ConfigureAwait(false);
            await _output.DrainAsync().WaitAsync(s_closeLimit).ConfigureAwait(false);
        }
        catch (TimeoutException e)
        {
            // The client does not take the rest.
            _connection.Fail(e);
        }
        finally
        {
            _alive.Free();
        }
    }

    private PeerWatch? WatchPeer()
    {
        try
        {
            return new PeerWatch(_connection.Socket.SafeHandle, _input.OnPeerEnded);
        }
        catch (ObjectDisposedException)
        {
            // Aborted meanwhile.
            return null;
        }
    }

    private void OnFailed(Exception failure)
    {
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
