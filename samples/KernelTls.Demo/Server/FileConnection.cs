using System.Net.Security;
using System.Net.Sockets;

namespace KernelTls.Demo.Server;

/// <summary>One connection of the server, from the handshake to close_notify.</summary>
internal sealed class FileConnection : IAsyncDisposable
{
    private const int LingerBytes = 1024 * 1024;
    private static readonly TimeSpan s_handshakeLimit = TimeSpan.FromSeconds(60);
    private static readonly TimeSpan s_requestLimit = TimeSpan.FromSeconds(30);
    private static readonly TimeSpan s_lingerLimit = TimeSpan.FromSeconds(2);

    private readonly Socket _socket;
    private readonly KtlsStream _stream;
    private readonly PublishedFile _file;
    private readonly CancellationToken _draining;
    private readonly CancellationToken _aborted;

    /// <param name="socket">An accepted connection; owned from here on.</param>
    /// <param name="file">What there is to serve.</param>
    /// <param name="draining">The connection is to end after the request that it is at.</param>
    /// <param name="aborted">The connection is to end at once.</param>
    public FileConnection(Socket socket, PublishedFile file, CancellationToken draining, CancellationToken aborted)
    {
        _socket = socket;
        _stream = new KtlsStream(
            new NetworkStream(socket, ownsSocket: true), leaveInnerStreamOpen: false, new KtlsOptions { Mode = KtlsMode.Environment });
        _file = file;
        _draining = draining;
        _aborted = aborted;
    }

    /// <summary>Serves the connection until one end closes it.</summary>
    /// <param name="options">How to shake hands.</param>
    /// <param name="onHandshake">Told what came of the handshake.</param>
    /// <exception cref="IOException">The client broke the connection off, or took nothing any more.</exception>
    public async Task RunAsync(SslServerAuthenticationOptions options, Action<ConnectionFacts> onHandshake)
    {
        using (CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(_aborted))
        {
            limit.CancelAfter(s_handshakeLimit);
            await _stream.AuthenticateAsServerAsync(options, limit.Token);
        }

        onHandshake(ConnectionFacts.Of("server", _stream));
        if (await ServeAsync())
        {
            await LingerAsync();
        }
    }

    /// <summary>Sends close_notify, where that has not been done, and closes the socket.</summary>
    public ValueTask DisposeAsync() => _stream.DisposeAsync();

    /// <summary>Answers requests. True: this end closes first; false: the client has closed.</summary>
    private async Task<bool> ServeAsync()
    {
        RequestReader requests = new(_stream);
        FileResponder responder = new(_stream, _file, _aborted);
        for (bool keepAlive = true; keepAlive;)
        {
            RequestHead? request;
            using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(_draining, _aborted);
            limit.CancelAfter(s_requestLimit);
            try
            {
                request = await requests.ReadAsync(limit.Token);
            }
            catch (BadRequestException e)
            {
                await responder.SendErrorAsync(e.Status, e.Message, keepAlive: false);
                return true;
            }
            catch (OperationCanceledException) when (!_aborted.IsCancellationRequested)
            {
                // An idle connection just ends; who began a request is told.
                if (requests.IsInRequest)
                {
                    await responder.SendErrorAsync(408, "the request took too long", keepAlive: false);
                }

                return true;
            }

            if (request is null)
            {
                return false;
            }

            keepAlive = request is { KeepAlive: true, HasBody: false } && !_draining.IsCancellationRequested;
            await responder.AnswerAsync(request, keepAlive);
        }

        return true;
    }

    /// <summary>
    /// Sends close_notify and waits for the client's own end: closing a socket with unread bytes would reset the connection,
    /// and the response could be lost on its way (RFC 9112, section 9.6).
    /// </summary>
    private async Task LingerAsync()
    {
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(_aborted);
        limit.CancelAfter(s_lingerLimit);
        try
        {
            await _stream.ShutdownAsync();
            _socket.Shutdown(SocketShutdown.Send);
            byte[] buffer = new byte[4096];
            for (int read, total = 0; total < LingerBytes && (read = await _stream.ReadAsync(buffer, limit.Token)) > 0;)
            {
                total += read;
            }
        }
        catch (Exception e) when (e is IOException or SocketException or OperationCanceledException)
        {
            // The response was sent. Whether the client says goodbye is its own affair.
        }
    }
}
