using System.Diagnostics;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Bench.Modes;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace KernelTls.Bench.Scenarios;

/// <summary>
/// Sends requests from HttpClient to Kestrel, one after another, on one connection or each on a new connection.
/// </summary>
internal class HttpExchange : Scenario
{
    protected const int BufferSize = 64 * 1024;

    private readonly Mode _mode;
    private readonly HttpExchangeKind _kind;
    private readonly byte[] _body;
    private readonly byte[] _clientBuffer = new byte[BufferSize];
    private readonly byte[] _serverBuffer = new byte[BufferSize];
    private readonly int _certificateSize;
    private readonly BenchFile? _file;
    private WebApplication? _server;
    private KernelSockets _before;
    private int _connections;
    private int _accepted;
    private int _resumed;
    private long _bytesOfFullHandshake;
    private long _bytesOfLastHandshake;
    private string? _wrongCipher;

    public HttpExchange(Mode mode, BenchCertificates certificates, HttpExchangeKind kind, int operationsPerRound)
    {
        _mode = mode;
        _kind = kind;
        OperationsPerRound = operationsPerRound;
        _certificateSize = certificates.Server.RawDataMemory.Length;
        _body = new byte[kind.RequestSize + (kind.IsFile ? 0 : kind.ResponseSize)];
        _file = kind.IsFile ? new BenchFile(kind.ResponseSize) : null;
        Client = CreateClient(mode, kind);
    }

    public override int OperationsPerRound { get; }

    /// <summary>Gets how many connections the server has accepted.</summary>
    public int Connections => _accepted;

    public override double? Resumed => _kind.Closes && _mode.HasHandshake ? (double)_resumed / _connections : null;

    protected HttpClient Client { get; }

    /// <summary>Gets the server's root; set by <see cref="PrepareAsync"/>.</summary>
    protected Uri Server { get; private set; } = null!;

    public override int WarmUpRounds => _kind.Closes ? 9 : base.WarmUpRounds;

    public override async Task PrepareAsync()
    {
        await StartServerAsync();
        KernelSockets before = KernelSockets.Read();
        await RequestAsync(_clientBuffer);
        _mode.Verify(KernelSockets.Read().Since(before), connections: 1);
        _bytesOfFullHandshake = _bytesOfLastHandshake;
    }

    /// <summary>Starts the server. It has received no request yet.</summary>
    protected async Task StartServerAsync()
    {
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions());
        builder.WebHost.UseKestrelCore().UseKestrelHttpsConfiguration().ConfigureKestrel(options =>
            options.Listen(_mode.EndPoint, endpoint =>
            {
                endpoint.Protocols = _kind.Version == HttpVersion.Version20 ? HttpProtocols.Http2 : HttpProtocols.Http1;
                _mode.ConfigureEndpoint(endpoint);
                endpoint.Use(next => connection =>
                {
                    Look(connection);
                    return next(connection);
                });
            }));
        _mode.ConfigureServer(builder.WebHost);
        _server = Build(builder);
        await _server.StartAsync();
        Server = new UriBuilder(_server.Urls.Single()) { Scheme = _mode.Scheme }.Uri;
    }

    public override async Task RunAsync(int operations)
    {
        BeginRound(_kind.Closes ? operations : 0);
        long begun = Stopwatch.GetTimestamp();
        for (int i = 0; i < operations; i++)
        {
            await RequestAsync(_clientBuffer);
            KeepTime(ref begun);
        }
    }

    public override void Verify()
    {
        _mode.Verify(KernelSockets.Read().Since(_before), _connections);
        if (_wrongCipher is { } cipher)
        {
            throw new BenchFailedException($"{_mode.Name} negotiated {cipher}");
        }

        // Concurrent connections may find no session that is still available. In that case, the number of resumed
        // sessions is a result and not an error.
        if (_kind.Closes && _kind.Concurrency == 1 && _mode.ResumesHttp && !IsResumed(_bytesOfLastHandshake))
        {
            throw new BenchFailedException(
                $"{_mode.Name} was to resume: the server's first handshake took {_bytesOfFullHandshake} bytes, this one {_bytesOfLastHandshake}");
        }
    }

    public override async ValueTask DisposeAsync()
    {
        Client.Dispose();
        if (_server is not null)
        {
            await _server.StopAsync();
        }

        _file?.Dispose();
    }

    /// <summary>Begins a round that opens this number of connections, which <see cref="Verify"/> checks.</summary>
    protected void BeginRound(int connections)
    {
        _before = KernelSockets.Read();
        _connections = connections;
        _resumed = 0;
    }

    /// <summary>Builds the server, which gives the same response to each request.</summary>
    protected virtual WebApplication Build(WebApplicationBuilder builder)
    {
        WebApplication server = builder.Build();
        server.Run(RespondAsync);
        return server;
    }

    /// <summary>
    /// Creates a client. Under load, none of its connections may be closed because the others were sufficient for a while.
    /// </summary>
    public static HttpClient CreateClient(Mode mode, HttpExchangeKind kind)
    {
        SocketsHttpHandler handler = mode.CreateHandler();
        if (kind.Concurrency > 1)
        {
            handler.PooledConnectionIdleTimeout = Timeout.InfiniteTimeSpan;
        }

        HttpClient client = new(handler);
        client.DefaultRequestHeaders.Host = BenchCertificates.Host;
        client.DefaultRequestHeaders.ConnectionClose = kind.Closes ? true : null;
        return client;
    }

    /// <summary>Sends one request and reads its response.</summary>
    /// <param name="buffer">The buffer for the response's body.</param>
    protected virtual Task RequestAsync(byte[] buffer) => RequestAsync(Client, buffer);

    /// <summary>Sends one request by a client and reads its response.</summary>
    /// <param name="client">A client that <see cref="CreateClient"/> created.</param>
    /// <param name="buffer">The buffer for the response's body.</param>
    protected async Task RequestAsync(HttpClient client, byte[] buffer)
    {
        using HttpRequestMessage request = new(_kind.RequestSize > 0 ? HttpMethod.Post : HttpMethod.Get, Server)
        {
            Version = _kind.Version,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
        };
        if (_kind.RequestSize > 0)
        {
            request.Content = new ByteArrayContent(_body, 0, _kind.RequestSize);
        }

        using HttpResponseMessage response = await client.SendAsync(request, HttpCompletionOption.ResponseHeadersRead);
        if (response.StatusCode != HttpStatusCode.OK || response.Version != _kind.Version)
        {
            throw new BenchFailedException($"the answer is {response.StatusCode} by HTTP/{response.Version}");
        }

        Stream body = await response.Content.ReadAsStreamAsync();
        await ExpectAsync(body, buffer, _kind.ResponseSize);
    }

    /// <summary>Completes when a request that has been read may be answered.</summary>
    protected virtual Task ArriveAsync() => Task.CompletedTask;

    private async Task RespondAsync(HttpContext context)
    {
        if (_kind.RequestSize > 0)
        {
            await ExpectAsync(context.Request.Body, _serverBuffer, _kind.RequestSize);
        }

        await ArriveAsync();
        context.Response.ContentLength = _kind.ResponseSize;
        if (_file is not null)
        {
            await context.Response.SendFileAsync(_file.Path);
        }
        else if (_kind.ResponseSize > 0)
        {
            await context.Response.Body.WriteAsync(_body.AsMemory(0, _kind.ResponseSize));
        }
    }

    /// <summary>
    /// Returns whether a handshake resumed a session. The server sends no certificate in such a handshake.
    /// </summary>
    private bool IsResumed(long bytesOfHandshake) => bytesOfHandshake + _certificateSize <= _bytesOfFullHandshake;

    /// <summary>Reads a body to its end and verifies its size.</summary>
    public static async Task ExpectAsync(Stream body, byte[] buffer, int size)
    {
        int received = 0;
        for (int count; (count = await body.ReadAsync(buffer)) > 0;)
        {
            received += count;
        }

        if (received != size)
        {
            throw new BenchFailedException($"{received} bytes of a body of {size}");
        }
    }

    /// <summary>Records the outcome of a connection's handshake. It is called once for each connection.</summary>
    private void Look(ConnectionContext connection)
    {
        Interlocked.Increment(ref _accepted);
        if (connection.Features.Get<ITlsHandshakeFeature>() is { } handshake
            && handshake.NegotiatedCipherSuite != TlsCipherSuite.TLS_AES_256_GCM_SHA384)
        {
            _wrongCipher = handshake.NegotiatedCipherSuite?.ToString() ?? "no cipher suite";
        }

        if (_kind.Closes && connection.Features.Get<IConnectionSocketFeature>()?.Socket is { } socket)
        {
            _bytesOfLastHandshake = TcpInfo.BytesWritten(socket);
            if (IsResumed(_bytesOfLastHandshake))
            {
                Interlocked.Increment(ref _resumed);
            }
        }
    }
}
