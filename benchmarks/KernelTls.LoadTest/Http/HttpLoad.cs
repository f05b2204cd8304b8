using System.Diagnostics;
using System.Net;
using Grpc.Core;
using Grpc.Net.Client;
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
    private readonly Pace _pace;
    private readonly (Uri Uri, int Size)[] _targets;
    private readonly byte[] _part;
    private readonly byte[] _message;
    private long _asked;
    private string? _firstError;

    public HttpLoad(HttpClientOptions options)
    {
        _options = options;
        _schedule = new Schedule(options.Warmup, options.Duration);
        _pace = new Pace(options.Rate);
        string scheme = options.UseHttps ? Uri.UriSchemeHttps : Uri.UriSchemeHttp;
        string target = $"{scheme}://{options.ServerAddress}:{options.ServerPort}{options.Path}";
        _targets = options.ResponseSizes is [int size]
            ? [(new Uri(target), size)]
            : [.. options.ResponseSizes.Select(size => (new Uri($"{target}/{size}"), size))];
        _part = new byte[Math.Min(options.RequestContentSize, options.RequestContentWriteSize)];
        _message = options.IsCall ? new byte[options.RequestContentSize] : [];
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
                        let calls = _options.IsCall ? CallsOf(client) : null
                        from _ in Enumerable.Range(0, _options.ConcurrencyPerHttpClient)
                        select Task.Run(() => AskAsync(client, calls, cancellationToken), cancellationToken));
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
        all.AddTo(results, _schedule);
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

    private CallInvoker CallsOf(HttpClient client) =>
        GrpcChannel.ForAddress(_targets[0].Uri.GetLeftPart(UriPartial.Authority), new GrpcChannelOptions { HttpClient = client }).CreateCallInvoker();

    private async Task<HttpTally> AskAsync(HttpClient client, CallInvoker? calls, CancellationToken cancellationToken)
    {
        HttpTally tally = new();
        byte[] buffer = new byte[ReadSize];
        while (!_schedule.IsOver)
        {
            long start = await _pace.WaitAsync(cancellationToken);
            try
            {
                if (_schedule.IsOver)
                {
                    break;
                }

                await (calls is null
                    ? AskOnceAsync(client, start, buffer, tally, cancellationToken)
                    : CallOnceAsync(calls, start, tally, cancellationToken));
            }
            catch (Exception e) when (
                e is HttpRequestException or IOException or RpcException or TaskCanceledException && !cancellationToken.IsCancellationRequested)
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

    private async Task CallOnceAsync(CallInvoker calls, long start, HttpTally tally, CancellationToken cancellationToken)
    {
        byte[] answer = await calls.AsyncUnaryCall(EchoCall.Method, null, new CallOptions(cancellationToken: cancellationToken), _message);
        long end = Stopwatch.GetTimestamp();
        Note(tally, new Answer(answer.Length == _targets[0].Size, answer.Length, $"a call gave {answer.Length} bytes", start, end, end, end));
    }

    private async Task AskOnceAsync(HttpClient client, long start, byte[] buffer, HttpTally tally, CancellationToken cancellationToken)
    {
        (Uri uri, int size) = _targets.Length == 1 ? _targets[0] : _targets[Interlocked.Increment(ref _asked) % _targets.Length];
        using HttpRequestMessage request = CreateRequest(uri);
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
        Note(tally, new Answer(
            response.StatusCode == HttpStatusCode.OK && received == size,
            received,
            $"{uri} gave {(int)response.StatusCode} with {received} bytes, expected 200 with {size}",
            start,
            headers,
            contentStart,
            end));
    }

    private void Note(HttpTally tally, in Answer answer)
    {
        if (!answer.IsGood)
        {
            Remember(answer.Text);
        }

        if (!_schedule.Note())
        {
            return;
        }

        tally.AddAnswer(answer.IsGood, answer.Received + (_options.IsPost || _options.IsCall ? _options.RequestContentSize : 0));
        if (answer.IsGood && _options.CollectRequestTimings)
        {
            tally.AddTimes(answer.Headers - answer.Start, answer.ContentStart - answer.Start, answer.End - answer.Start);
        }
    }

    private HttpRequestMessage CreateRequest(Uri uri)
    {
        HttpRequestMessage request = new(_options.IsPost ? HttpMethod.Post : HttpMethod.Get, uri)
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
