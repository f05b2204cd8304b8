using System.Diagnostics;
using System.Net.Security;
using System.Net.Sockets;
using KernelTls.LoadTest.Report;
using KernelTls.LoadTest.Running;
using KernelTls.LoadTest.Tls;

namespace KernelTls.LoadTest.Streams;

/// <summary>Runs connections that repeat one operation. If one connection fails, the run fails.</summary>
internal sealed class StreamLoad(StreamClientOptions options)
{
    private readonly TlsChoice _tls = new();
    private readonly ConnectionTally _connections = new();
    private readonly Schedule _schedule = new(
        options.Warmup,
        options.Duration,
        options is { Scenario: StreamScenario.ReadWrite, SendBufferSize: > 0, ReceiveBufferSize: > 0 } ? 2 : 1);
    private readonly byte[] _data = new byte[options.SendBufferSize];

    private readonly SslClientAuthenticationOptions _authentication = Authentication(options, StreamProtocols.Of(options.Scenario));

    public async Task RunAsync(CancellationToken cancellationToken)
    {
        StreamTally all = new();
        await _schedule.RunAsync(
            async () =>
            {
                StreamTally[] parts = await Task.WhenAll(
                    Enumerable.Range(0, options.Connections).Select(_ => Task.Run(() => WorkAsync(cancellationToken), cancellationToken)));
                Array.ForEach(parts, all.Add);
            },
            cancellationToken);

        await ThrowIfServerFailedAsync(cancellationToken);
        Results results = new();
        AddTo(results, all, _schedule.Counted.TotalSeconds);
        _connections.AddTo(results);
        results.AddEnvironment();
        results.Tell();
    }

    /// <summary>
    /// Ends this end of the stream and reads to the end of the other, because a client receives a session ticket only if it reads after the
    /// handshake.
    /// </summary>
    public static async Task EndAsync(SslStream stream)
    {
        await stream.ShutdownAsync();
        byte[] buffer = new byte[StreamServerOptions.ReferenceBufferSize];
        while (await stream.ReadAsync(buffer) > 0)
        {
        }
    }

    private static SslClientAuthenticationOptions Authentication(StreamClientOptions options, SslApplicationProtocol protocol) => new()
    {
        TargetHost = "localhost",
        RemoteCertificateValidationCallback = (_, _, _, _) => true,
        ApplicationProtocols = [protocol],
        EnabledSslProtocols = options.TlsVersion,
        AllowTlsResume = options.AllowTlsResume,
    };

    private void AddTo(Results results, StreamTally all, double seconds)
    {
        WorkMeter.Add(results, _schedule.Processor, all.RoundTrips + all.Handshakes.Count, all.BytesRead + all.BytesWritten);
        switch (options.Scenario)
        {
            case StreamScenario.ReadWrite:
                results.Add(Metrics.BytesRead, all.BytesRead / seconds);
                results.Add(Metrics.BytesWritten, all.BytesWritten / seconds);
                break;
            case StreamScenario.Rps:
                results.Add(Metrics.RoundTrips, all.RoundTrips / seconds);
                break;
            case StreamScenario.Handshake:
                results.Add(Metrics.Handshakes, all.Handshakes.Count / seconds);
                Metrics.Handshake.Add(results, all.Handshakes);
                break;
        }
    }

    private async Task<StreamTally> WorkAsync(CancellationToken cancellationToken)
    {
        StreamTally tally = new();
        do
        {
            await using SslStream stream = await ConnectAsync(cancellationToken);
            long start = Stopwatch.GetTimestamp();
            await stream.HandshakeAsClientAsync(_authentication, cancellationToken);
            long shaken = Stopwatch.GetTimestamp();
            _connections.Add(stream);
            switch (options.Scenario)
            {
                case StreamScenario.ReadWrite:
                    await ReadWriteAsync(stream, tally, cancellationToken);
                    break;
                case StreamScenario.Rps:
                    await AskAsync(stream, tally, cancellationToken);
                    break;
            }

            await EndAsync(stream);
            if (options.Scenario == StreamScenario.Handshake && _schedule.Note())
            {
                tally.Handshakes.Add(shaken - start);
            }
        }
        while (!_schedule.IsOver);
        return tally;
    }

    /// <summary>Asks the server, by a connection that neither end counts.</summary>
    /// <exception cref="LoadTestFailedException">Connections of this run failed at the server.</exception>
    private async Task ThrowIfServerFailedAsync(CancellationToken cancellationToken)
    {
        await using SslStream stream = await ConnectAsync(cancellationToken);
        await stream.HandshakeAsClientAsync(Authentication(options, StreamProtocols.Failures), cancellationToken);
        using StreamReader reader = new(stream, leaveOpen: true);
        string failures = await reader.ReadToEndAsync(cancellationToken);
        await stream.ShutdownAsync();
        if (failures.Length > 0)
        {
            throw new LoadTestFailedException(failures);
        }
    }

    /// <summary>Returns a stream of the selected implementation, before its handshake.</summary>
    private async Task<SslStream> ConnectAsync(CancellationToken cancellationToken)
    {
        Socket socket = new(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        try
        {
            await socket.ConnectAsync(options.ServerAddress, options.ServerPort, cancellationToken);
            return _tls.CreateStream(new NetworkStream(socket, ownsSocket: true));
        }
        catch
        {
            socket.Dispose();
            throw;
        }
    }

    private async Task ReadWriteAsync(SslStream stream, StreamTally tally, CancellationToken cancellationToken)
    {
        Task writing = Task.Run(
            async () =>
            {
                while (_data.Length > 0 && !_schedule.IsOver)
                {
                    await stream.WriteAsync(_data, cancellationToken);
                    tally.BytesWritten += _schedule.Note() ? _data.Length : 0;
                }
            },
            cancellationToken);

        byte[] buffer = new byte[options.ReceiveBufferSize];
        while (buffer.Length > 0 && !_schedule.IsOver)
        {
            int count = await stream.ReadAsync(buffer, cancellationToken);
            if (count == 0)
            {
                throw new LoadTestFailedException("the server has ended the connection");
            }

            tally.BytesRead += _schedule.Note(kind: _data.Length > 0 ? 1 : 0) ? count : 0;
        }

        await writing;
    }

    private async Task AskAsync(SslStream stream, StreamTally tally, CancellationToken cancellationToken)
    {
        byte[] answer = new byte[options.ReceiveBufferSize];
        while (!_schedule.IsOver)
        {
            await stream.WriteAsync(_data, cancellationToken);
            await stream.ReadExactlyAsync(answer, cancellationToken);
            tally.RoundTrips += _schedule.Note() ? 1 : 0;
        }
    }
}
