using System.Net;

namespace KernelTls.Soak;

/// <summary>
/// Uses HttpClient on kept-alive connections: responses, files and request bodies; with HTTP/2 several at once.
/// </summary>
/// <param name="context">The context that clients share.</param>
/// <param name="version">The version of HTTP.</param>
/// <param name="keeps">
/// Whether one connection lasts for the whole run; otherwise a round's connections are closed with it.
/// </param>
/// <param name="seed">The seed of the client's choices.</param>
internal class HttpSoakClient(SoakContext context, Version version, bool keeps, int seed)
    : SoakClient(context, seed)
{
    private HttpClient? _client;

    public override int KeptConnections => keeps ? 1 : 0;

    protected override string Kind => $"http/{version}{(keeps ? "-kept" : "")}";

    protected HttpClient Client => _client ??= Create();

    protected override async Task OperateAsync(CancellationToken limit)
    {
        if (!keeps && Random.Next(20) == 0)
        {
            await GiveUpAsync(limit);
        }
        else if (version == HttpVersion.Version20)
        {
            await Task.WhenAll(Enumerable.Range(0, 1 + Random.Next(4)).Select(_ => ExchangeAsync(Random.Next(3), Payload.ChooseSize(Random), limit)));
        }
        else
        {
            await ExchangeAsync(Random.Next(3), Payload.ChooseSize(Random), limit);
        }
    }

    protected override ValueTask CloseAsync()
    {
        Abandon();
        return ValueTask.CompletedTask;
    }

    protected override ValueTask CloseRoundAsync() => keeps ? ValueTask.CompletedTask : CloseAsync();

    protected override void Abandon()
    {
        _client?.Dispose();
        _client = null;
    }

    private Task ExchangeAsync(int kind, int size, CancellationToken limit) => kind switch
    {
        0 => GetAsync("/file", limit),
        1 => PostAsync(Payload.Take(Random, size), limit),
        _ => GetAsync($"/bytes/{size}", limit),
    };

    private async Task GetAsync(string path, CancellationToken limit)
    {
        using HttpResponseMessage response = await Client.GetAsync(path, limit);
        response.EnsureSuccessStatusCode();
        byte[] payload = await response.Content.ReadAsByteArrayAsync(limit);
        Payload.Verify(payload, response.Headers.GetValues(WebServer.HashHeader).Single(), path);
        Context.Tally.CountBytes(payload.Length);
    }

    private async Task PostAsync(ReadOnlyMemory<byte> payload, CancellationToken limit)
    {
        using HttpResponseMessage response = await Client.PostAsync("/verify", new ReadOnlyMemoryContent(payload), limit);
        response.EnsureSuccessStatusCode();
        string hash = await response.Content.ReadAsStringAsync(limit);
        Payload.Verify(payload.Span, hash, "a request body");
        Context.Tally.CountBytes(payload.Length);
    }

    /// <summary>Abandons a partly read response.</summary>
    private async Task GiveUpAsync(CancellationToken limit)
    {
        using HttpResponseMessage response =
            await Client.GetAsync($"/bytes/{Payload.MaxSize}", HttpCompletionOption.ResponseHeadersRead, limit);
        Stream body = await response.Content.ReadAsStreamAsync(limit);
        await body.ReadExactlyAsync(new byte[1 + Random.Next(10_000)], limit);
    }

    private HttpClient Create()
    {
        SocketsHttpHandler handler = new() { UseProxy = false, EnableMultipleHttp2Connections = false };
        if (keeps)
        {
            handler.PooledConnectionIdleTimeout = Timeout.InfiniteTimeSpan;
        }

        handler.SslOptions.CertificateChainPolicy = Context.CreatePolicy();
        if (Context.Options.Mode != SoakMode.Stock)
        {
            handler.UseKernelTls(Context.Options.CreateStreamOptions());
        }

        return new HttpClient(handler)
        {
            BaseAddress = Context.Web,
            DefaultRequestVersion = version,
            DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Timeout = Timeout.InfiniteTimeSpan,
        };
    }
}
