using System.Net;
using System.Security.Authentication;

namespace KernelTls.Demo.Peers;

/// <summary>Downloads with HttpClient over <see cref="KtlsStream"/>.</summary>
internal sealed class HttpClientPeer : IPeer
{
    private static readonly TimeSpan s_stallLimit = TimeSpan.FromSeconds(60);

    private readonly SslProtocols _protocol;
    private readonly DemoCertificates _certificates;

    public HttpClientPeer(SslProtocols protocol, DemoCertificates certificates)
    {
        _protocol = protocol;
        _certificates = certificates;
    }

    public string Name => "HttpClient";

    public async Task<ConnectionFacts?> DownloadAsync(Uri address, ReceivedFile received, CancellationToken cancellationToken)
    {
        ConnectionFacts? facts = null;
        using SocketsHttpHandler handler = new()
        {
            UseProxy = false,
            SslOptions = new() { EnabledSslProtocols = _protocol, CertificateChainPolicy = _certificates.CreateTrust() },

            // The handler does not expose its connections. A filter that changes nothing sees each once, after the handshake.
            PlaintextStreamFilter = (context, _) =>
            {
                facts = context.PlaintextStream is KtlsStream stream
                    ? ConnectionFacts.Of("client", stream)
                    : throw new DemoFailedException($"HttpClient runs over {context.PlaintextStream.GetType()}, not over KtlsStream");
                return ValueTask.FromResult(context.PlaintextStream);
            },
        };
        using HttpClient client = new(handler.UseKernelTls(new KtlsOptions { Mode = KtlsMode.Environment }));
        using CancellationTokenSource stalled = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        try
        {
            await DownloadAsync(client, address, received, stalled);
        }
        catch (OperationCanceledException) when (stalled.IsCancellationRequested && !cancellationToken.IsCancellationRequested)
        {
            throw new DemoFailedException($"HttpClient: nothing arrived for {s_stallLimit.TotalSeconds} s");
        }

        return facts;
    }

    private static async Task DownloadAsync(
        HttpClient client, Uri address, ReceivedFile received, CancellationTokenSource stalled)
    {
        stalled.CancelAfter(s_stallLimit);
        using HttpResponseMessage response =
            await client.GetAsync(address, HttpCompletionOption.ResponseHeadersRead, stalled.Token);
        if (response.StatusCode != HttpStatusCode.OK)
        {
            throw new DemoFailedException($"HttpClient: the server answered {(int)response.StatusCode} {response.ReasonPhrase}");
        }

        await using Stream body = await response.Content.ReadAsStreamAsync(stalled.Token);
        byte[] buffer = new byte[256 * 1024];
        for (int read; (read = await body.ReadAsync(buffer, stalled.Token)) > 0;)
        {
            received.Append(buffer.AsSpan(0, read));
            stalled.CancelAfter(s_stallLimit);
        }
    }
}
