using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;

namespace KernelTls.Soak;

/// <summary>A server of bare streams, which returns each frame.</summary>
internal sealed class StreamServer : IAsyncDisposable
{
    private readonly SoakContext _context;
    private readonly Socket _listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
    private readonly CancellationTokenSource _over = new();
    private readonly Task _accepting;
    private readonly SslServerAuthenticationOptions _options;

    public StreamServer(SoakContext context)
    {
        _context = context;
        _options = new SslServerAuthenticationOptions
        {
            ServerCertificateContext = SslStreamCertificateContext.Create(context.Certificate, null, offline: true),
        };
        _listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        _listener.Listen(512);
        context.Streams = (IPEndPoint)_listener.LocalEndPoint!;
        _accepting = AcceptAsync();
    }

    public async ValueTask DisposeAsync()
    {
        await _over.CancelAsync();
        await _accepting;
        _listener.Dispose();
        _over.Dispose();
    }

    private async Task AcceptAsync()
    {
        try
        {
            while (true)
            {
                Socket socket = await _listener.AcceptAsync(_over.Token);
                _ = Task.Run(() => ServeAsync(socket));
            }
        }
        catch (OperationCanceledException) when (_over.IsCancellationRequested)
        {
            // The run is over.
        }
    }

    private async Task ServeAsync(Socket socket)
    {
        try
        {
            socket.NoDelay = true;
            await using KtlsStream stream = new(
                new NetworkStream(socket, ownsSocket: true), leaveInnerStreamOpen: false, _context.Options.CreateStreamOptions());
            await stream.AuthenticateAsServerAsync(_options, _over.Token);
            while (await Frame.ReadAsync(stream, _over.Token) is { } payload)
            {
                byte[] answer = Frame.Create(payload);
                if (_context.Sabotage.IsDue(Fault.Byte))
                {
                    answer[^1] ^= 1;
                }

                if (_context.Sabotage.IsDue(Fault.Hang))
                {
                    await Task.Delay(Timeout.Infinite, _over.Token);
                }

                await stream.WriteAsync(answer, _over.Token);
            }
        }
        catch (InvalidDataException e)
        {
            _context.Findings.Add(Finding.Corruption, $"the server of streams: {e.Message}");
        }
        catch (Exception e) when (e is IOException or AuthenticationException or OperationCanceledException)
        {
            // A misbehaving client. Other clients report failures themselves.
        }
        catch (Exception e)
        {
            _context.Findings.Add(Finding.Failure, $"the server of streams: {e}");
        }
    }
}
