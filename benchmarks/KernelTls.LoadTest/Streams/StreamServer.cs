using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.LoadTest.Report;
using KernelTls.LoadTest.Running;
using KernelTls.LoadTest.Tls;

namespace KernelTls.LoadTest.Streams;

/// <summary>
/// Runs the scenario that the client requests by ALPN on each connection. Both ends end every connection with
/// close_notify.
/// </summary>
internal sealed class StreamServer(StreamServerOptions options)
{
    private readonly TlsChoice _tls = new();
    private readonly ConnectionTally _tally = new();
    private readonly WorkMeter _work = new();
    private readonly byte[] _data = new byte[options.SendBufferSize];
    private readonly FailedConnections _failures = new();

    private readonly SslServerAuthenticationOptions _authentication = new()
    {
        ServerCertificateContext = SslStreamCertificateContext.Create(UntrustedCertificate.Create(), additionalCertificates: null, offline: true),
        ApplicationProtocols = StreamProtocols.All,
        EnabledSslProtocols = options.TlsVersion,
        AllowTlsResume = options.AllowTlsResume,
    };

    public async Task RunAsync(CancellationToken cancellationToken)
    {
        IPAddress address = (await Dns.GetHostAddressesAsync(options.ServerAddress, cancellationToken))[0];
        using Socket listener = new(address.AddressFamily, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(address, options.ServerPort));
        listener.Listen();
        await Console.Out.WriteLineAsync($"Listening on {listener.LocalEndPoint}");
        await Task.WhenAll(
            AcceptAsync(listener, cancellationToken),
            _tally.TellWhileAsync(_work, results => results.Add(Metrics.StreamErrors, _failures.CountIn(_tally.Run)), cancellationToken));
    }

    private async Task AcceptAsync(Socket listener, CancellationToken cancellationToken)
    {
        try
        {
            while (true)
            {
                Socket socket = await listener.AcceptAsync(cancellationToken);
                socket.NoDelay = true;
                _ = Task.Run(() => ServeAsync(socket, cancellationToken), CancellationToken.None);
            }
        }
        catch (OperationCanceledException)
        {
            // The server ends. The remaining connections end with the process.
        }
    }

    private async Task ServeAsync(Socket socket, CancellationToken cancellationToken)
    {
        bool isAdded = false;
        try
        {
            await using SslStream stream = _tls.CreateStream(new NetworkStream(socket, ownsSocket: true));
            await stream.HandshakeAsServerAsync(_authentication, cancellationToken);
            if (stream.NegotiatedApplicationProtocol == StreamProtocols.Failures)
            {
                await stream.WriteAsync(_failures.Tell(_tally.Run), cancellationToken);
                await StreamLoad.EndAsync(stream);
                return;
            }

            _tally.Add(stream);
            isAdded = true;
            switch (StreamProtocols.ScenarioOf(stream.NegotiatedApplicationProtocol))
            {
                case StreamScenario.ReadWrite: await ReadWriteAsync(stream); break;
                case StreamScenario.Rps: await AnswerAsync(stream); break;
            }

            await StreamLoad.EndAsync(stream);
        }
        catch (Exception e) when (e is IOException or SocketException or AuthenticationException or LoadTestFailedException)
        {
            string error = LoadTestCommand.Describe(e);
            _failures.Add(_tally.Run, error);
            await Console.Error.WriteLineAsync($"a connection failed: {error}");
        }
        catch (OperationCanceledException)
        {
            // The server ended during the handshake.
        }
        finally
        {
            if (isAdded)
            {
                _tally.End();
            }
        }
    }

    /// <summary>Reads and writes until the client has ended its direction.</summary>
    private async Task ReadWriteAsync(SslStream stream)
    {
        using CancellationTokenSource ended = new();
        Task writing = Task.Run(async () =>
        {
            while (_data.Length > 0 && !ended.IsCancellationRequested)
            {
                await stream.WriteAsync(_data);
                _work.NoteBytes(_data.Length);
            }
        });
        byte[] buffer = new byte[Math.Max(1, options.ReceiveBufferSize)];
        try
        {
            while (await stream.ReadAsync(buffer) is var received and > 0)
            {
                _work.NoteBytes(received);
                if (options.ReceiveBufferSize == 0)
                {
                    throw new LoadTestFailedException("the client writes, and receiveBufferSize is 0");
                }
            }
        }
        finally
        {
            await ended.CancelAsync();
        }

        await writing;
    }

    private async Task AnswerAsync(SslStream stream)
    {
        byte[] request = new byte[options.ReceiveBufferSize];
        if (request.Length == 0 || _data.Length == 0)
        {
            throw new LoadTestFailedException("Rps needs a receiveBufferSize and a sendBufferSize");
        }

        while (true)
        {
            int received = await stream.ReadAtLeastAsync(request, request.Length, throwOnEndOfStream: false);
            if (received == 0)
            {
                return;
            }

            if (received < request.Length)
            {
                throw new LoadTestFailedException($"a request ended after {received} of {request.Length} bytes");
            }

            await stream.WriteAsync(_data);
            _work.NoteOperation(received + _data.Length);
        }
    }
}
