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

/// <summary>HttpClient asks Kestrel, one request after the other: on one connection, or each on one of its own.</summary>
internal sealed class HttpExchange : Scenario
{
    private const int BufferSize = 64 * 1024;

    private readonly Mode _mode;
    private readonly HttpExchangeKind _kind;
    private readonly byte[] _body;
    private readonly byte[] _clientBuffer = new byte[BufferSize];
    private readonly byte[] _serverBuffer = new byte[BufferSize];
    private readonly int _certificateSize;
    private readonly BenchFile? _file;
    private readonly HttpClient _client;
    private WebApplication? _server;
    private Uri _uri = null!;
    private KernelCounters _before;
    private int _connections;
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
        _client = new HttpClient(mode.CreateHandler());
        _client.DefaultRequestHeaders.Host = BenchCertificates.Host;
        _client.DefaultRequestHeaders.ConnectionClose = kind.Closes ? true : null;
    }

    public override int OperationsPerRound { get; }

    public override int WarmUpRounds => _kind.Closes ? 9 : base.WarmUpRounds;

    public override async Task PrepareAsync()
    {
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions());
        builder.WebHost.UseKestrelCore().UseKestrelHttpsConfiguration().ConfigureKestrel(options =>
            options.Listen(IPAddress.Loopback, 0, endpoint =>
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
        _server = builder.Build();
        _server.Run(RespondAsync);
        await _server.StartAsync();
        _uri = new UriBuilder(_server.Urls.Single()) { Scheme = _mode.Scheme }.Uri;

        KernelCounters before = KernelCounters.Read();
        await RequestAsync();
        _mode.VerifyHttp(KernelCounters.Read().Since(before), connections: 1);
        _bytesOfFullHandshake = _bytesOfLastHandshake;
    }

    public override async Task RunAsync(int operations)
    {
        _before = KernelCounters.Read();
        _connections = _kind.Closes ? operations : 0;
        long begun = Stopwatch.GetTimestamp();
        for (int i = 0; i < operations; i++)
        {
            await RequestAsync();
            KeepTime(ref begun);
        }
    }

    public override void Verify()
    {
        _mode.VerifyHttp(KernelCounters.Read().Since(_before), _connections);
        if (_wrongCipher is { } cipher)
        {
            throw new BenchFailedException($"{_mode.Name} negotiated {cipher}");
        }

        // A resumed handshake is one in which the server sent no certificate.
        if (_kind.Closes && _mode.ResumesHttp && _bytesOfLastHandshake + _certificateSize > _bytesOfFullHandshake)
        {
            throw new BenchFailedException(
                $"{_mode.Name} was to resume: the server's first handshake took {_bytesOfFullHandshake} bytes, this one {_bytesOfLastHandshake}");
        }
    }

    public override async ValueTask DisposeAsync()
    {
        _client.Dispose();
        if (_server is not null)
        {
            await _server.StopAsync();
        }

        _file?.Dispose();
    }

    private async Task RequestAsync()
    {
        using HttpRequestMessage request = new(_kind.RequestSize > 0 ? HttpMethod.Post : HttpMethod.Get, _uri)
        {
            Version = _kind.Version,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
        };
        if (_kind.RequestSize > 0)
        {
            request.Content = new ByteArrayContent(_body, 0, _kind.RequestSize);
        }

        using HttpResponseMessage response = await _client.SendAsync(request, HttpCompletionOption.ResponseHeadersRead);
        if (response.StatusCode != HttpStatusCode.OK || response.Version != _kind.Version)
        {
            throw new BenchFailedException($"the answer is {response.StatusCode} by HTTP/{response.Version}");
        }

        Stream body = await response.Content.ReadAsStreamAsync();
        await ExpectAsync(body, _clientBuffer, _kind.ResponseSize);
    }

    private async Task RespondAsync(HttpContext context)
    {
        if (_kind.RequestSize > 0)
        {
            await ExpectAsync(context.Request.Body, _serverBuffer, _kind.RequestSize);
        }

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

    /// <summary>Reads to the end of a body, which is to have so many bytes.</summary>
    private static async Task ExpectAsync(Stream body, byte[] buffer, int size)
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

    /// <summary>Once for each connection: what its handshake came to.</summary>
    private void Look(ConnectionContext connection)
    {
        if (connection.Features.Get<ITlsHandshakeFeature>() is { } handshake
            && handshake.NegotiatedCipherSuite != TlsCipherSuite.TLS_AES_256_GCM_SHA384)
        {
            _wrongCipher = handshake.NegotiatedCipherSuite?.ToString() ?? "no cipher suite";
        }

        if (_kind.Closes && connection.Features.Get<IConnectionSocketFeature>()?.Socket is { } socket)
        {
            _bytesOfLastHandshake = TcpInfo.BytesAcknowledged(socket);
        }
    }
}
