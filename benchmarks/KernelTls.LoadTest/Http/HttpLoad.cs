using System.Diagnostics;
using System.Net;
using KernelTls.LoadTest.Report;
using KernelTls.LoadTest.Running;
using KernelTls.LoadTest.Tls;

namespace KernelTls.LoadTest.Http;

/// <summary>Runs instances of HttpClient that repeat one request.</summary>
internal sealed class HttpLoad
{
    public const string GetPath = "/get";
    public const string PostPath = "/post";

    private const int ReadSize = 81_920;

    private readonly HttpClientOptions _options;
    private readonly TlsChoice _tls = new();
    private readonly ConnectionTally _connections = new();
    private readonly Schedule _schedule;
    private readonly Uri _uri;
    private readonly byte[] _part;
    private string? _firstError;

    public HttpLoad(HttpClientOptions options)
    {
        _options = options;
        _schedule = new Schedule(options.Warmup, options.Duration);
        string scheme = options.UseHttps ? Uri.UriSchemeHttps : Uri.UriSchemeHttp;
        _uri = new Uri($"{scheme}://{options.ServerAddress}:{options.ServerPort}{options.Path}");
        _part = new byte[Math.Min(options.RequestContentSize, options.RequestContentWriteSize)];
    }

    public async Task RunAsync(CancellationToken cancellationToken)
    {
        HttpClient[] clients = [.. Enumerable.Range(0, _options.NumberOfHttpClients).Select(_ => CreateClient())];
        HttpTally all = new();
        try
        {
            await _schedule.RunAsync(
                async () =>
                {
                    HttpTally[] parts = await Task.WhenAll(
                        from client in clients
                        from _ in Enumerable.Range(0, _options.ConcurrencyPerHttpClient)
                        select Task.Run(() => AskAsync(client, cancellationToken), cancellationToken));
                    Array.ForEach(parts, all.Add);
                },
                cancellationToken);
        }
        finally
        {
            Array.ForEach(clients, client => client.Dispose());
        }

        if (_firstError is not null)
        {
            await Console.Error.WriteLineAsync($"the first error or bad response: {_firstError}");
        }

        if (all.Answered == all.Bad)
        {
            throw new LoadTestFailedException($"no request was answered well: {_firstError}");
        }

        Results results = new();
        all.AddTo(results, _schedule, _options.ResponseSize + (_options.IsPost ? _options.RequestContentSize : 0));
        _connections.AddTo(results);
        results.AddEnvironment();
        results.Tell();
    }

    private HttpClient CreateClient()
    {
        SocketsHttpHandler handler = new()
        {
            UseProxy = false,
            MaxConnectionsPerServer =
                _options.Http11MaxConnectionsPerServer > 0 ? _options.Http11MaxConnectionsPerServer : int.MaxValue,
            EnableMultipleHttp2Connections = _options.Http20EnableMultipleConnections,

            // The filter is called once for each connection, after its handshake. It returns the stream unchanged.
            PlaintextStreamFilter = (context, _) =>
            {
                _connections.Add(context.PlaintextStream);
                return ValueTask.FromResult(context.PlaintextStream);
            },
        };
        handler.SslOptions.RemoteCertificateValidationCallback = (_, _, _, _) => true;
        return new HttpClient(_tls.IsStock ? handler : handler.UseKernelTls(_tls.Options));
    }

    private async Task<HttpTally> AskAsync(HttpClient client, CancellationToken cancellationToken)
    {
        HttpTally tally = new();
        byte[] buffer = new byte[ReadSize];
        while (!_schedule.IsOver)
        {
            try
            {
                await AskOnceAsync(client, buffer, tally, cancellationToken);
            }
            catch (Exception e) when (e is HttpRequestException or IOException or TaskCanceledException && !cancellationToken.IsCancellationRequested)
            {
                Remember(LoadTestCommand.Describe(e));
                if (_schedule.Note())
                {
                    tally.AddError();
                }
            }
        }

        return tally;
    }

    private async Task AskOnceAsync(HttpClient client, byte[] buffer, HttpTally tally, CancellationToken cancellationToken)
    {
        using HttpRequestMessage request = CreateRequest();
        long start = Stopwatch.GetTimestamp();
        using HttpResponseMessage response =
            await client.SendAsync(request, HttpCompletionOption.ResponseHeadersRead, cancellationToken);
        long headers = Stopwatch.GetTimestamp();
        Stream body = await response.Content.ReadAsStreamAsync(cancellationToken);
        int count = await body.ReadAsync(buffer, cancellationToken);
        long contentStart = Stopwatch.GetTimestamp();
        long received = count;
        while (count > 0)
        {
            count = await body.ReadAsync(buffer, cancellationToken);
            received += count;
        }

        long end = Stopwatch.GetTimestamp();
        bool isGood = response.StatusCode == HttpStatusCode.OK && received == _options.ResponseSize;
        if (!isGood)
        {
            Remember($"{_uri} gave {(int)response.StatusCode} with {received} bytes, expected 200 with {_options.ResponseSize}");
        }

        if (!_schedule.Note())
        {
            return;
        }

        tally.AddAnswer(isGood);
        if (isGood && _options.CollectRequestTimings)
        {
            tally.AddTimes(headers - start, contentStart - start, end - start);
        }
    }

    private HttpRequestMessage CreateRequest()
    {
        HttpRequestMessage request = new(_options.IsPost ? HttpMethod.Post : HttpMethod.Get, _uri)
        {
            Version = _options.HttpVersion,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Content = _options.IsPost ? new RequestContent(_options, _part) : null,
        };
        foreach ((string name, string value) in _options.Headers)
        {
            request.Headers.TryAddWithoutValidation(name, value);
        }

        return request;
    }

    private void Remember(string error) => Interlocked.CompareExchange(ref _firstError, error, null);
}
