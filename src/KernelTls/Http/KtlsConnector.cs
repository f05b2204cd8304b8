using System.Net;
using System.Net.Security;
using System.Net.Sockets;

namespace KernelTls.Http;

/// <summary>The ConnectCallback of one SocketsHttpHandler: connects, and shakes hands where the stock handler would.</summary>
internal sealed class KtlsConnector
{
    private static readonly List<SslApplicationProtocol> s_http2 = [SslApplicationProtocol.Http2];
    private static readonly List<SslApplicationProtocol> s_http2Or11 = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11];

    private readonly SocketsHttpHandler _handler;
    private readonly KtlsOptions _options;
    private readonly Func<SocketsHttpConnectionContext, CancellationToken, ValueTask<Stream>> _connect;

    public KtlsConnector(SocketsHttpHandler handler, KtlsOptions options)
    {
        _handler = handler;
        _options = options;
        _connect = handler.ConnectCallback ?? ConnectTcpAsync;
    }

    public async ValueTask<Stream> ConnectAsync(SocketsHttpConnectionContext context, CancellationToken cancellationToken)
    {
        Stream transport = await _connect(context, cancellationToken).ConfigureAwait(false);
        if (!IsDirectTls(context) || transport is SslStream)
        {
            return transport;
        }

        // HTTP knows where an answer ends, and the handler what to do where the connection ends first.
        KtlsStream stream = new(transport, leaveInnerStreamOpen: false, _options.ForFramedProtocol());
        try
        {
            await stream.AuthenticateAsClientAsync(OptionsFor(context.InitialRequestMessage), cancellationToken).ConfigureAwait(false);
            return stream;
        }
        catch
        {
            await stream.DisposeAsync().ConfigureAwait(false);
            throw;
        }
    }

    /// <summary>
    /// The callback is asked for http:// and for proxies as well. A proxy's address is not the request's: TLS to it, or through
    /// it, is the stock handler's.
    /// </summary>
    private static bool IsDirectTls(SocketsHttpConnectionContext context)
    {
        Uri? uri = context.InitialRequestMessage.RequestUri;
        return uri is not null
            && (uri.Scheme == Uri.UriSchemeHttps || uri.Scheme == Uri.UriSchemeWss)
            && context.DnsEndPoint.Port == uri.Port
            && string.Equals(context.DnsEndPoint.Host, uri.IdnHost, StringComparison.OrdinalIgnoreCase);
    }

    private SslClientAuthenticationOptions OptionsFor(HttpRequestMessage request)
    {
        SslClientAuthenticationOptions options = SslOptionsCopy.Of(_handler.SslOptions);
        options.TargetHost = request.Headers.Host is { } host ? HostOf(host) : request.RequestUri!.IdnHost;
        options.ApplicationProtocols = ProtocolsFor(request);
        if (options.ApplicationProtocols is not null)
        {
            // RFC 9113, section 9.2.1: no renegotiation under HTTP/2.
            options.AllowRenegotiation = false;
        }

        return options;
    }

    /// <summary>HTTP/1.1 alone is asked for without ALPN, as the stock handler does.</summary>
    private static List<SslApplicationProtocol>? ProtocolsFor(HttpRequestMessage request) =>
        (request.Version.Major >= 2, request.VersionPolicy) switch
        {
            (true, not HttpVersionPolicy.RequestVersionOrLower) => s_http2,
            (true, _) or (_, HttpVersionPolicy.RequestVersionOrHigher) => s_http2Or11,
            _ => null,
        };

    /// <summary>The Host header without its port; an IPv6 literal keeps its brackets off.</summary>
    private static string HostOf(string header)
    {
        if (header.StartsWith('['))
        {
            int end = header.IndexOf(']', StringComparison.Ordinal);
            return end > 0 ? header[1..end] : header;
        }

        int colon = header.IndexOf(':', StringComparison.Ordinal);
        return colon >= 0 ? header[..colon] : header;
    }

    private static async ValueTask<Stream> ConnectTcpAsync(
        SocketsHttpConnectionContext context, CancellationToken cancellationToken)
    {
        Socket socket = new(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        try
        {
            await socket.ConnectAsync(context.DnsEndPoint, cancellationToken).ConfigureAwait(false);
            return new NetworkStream(socket, ownsSocket: true);
        }
        catch
        {
            socket.Dispose();
            throw;
        }
    }
}
