using System.Net;
using System.Net.Security;
using System.Net.Sockets;

namespace KernelTls.Http;

/// <summary>
/// Implements the ConnectCallback of one SocketsHttpHandler: connects, and performs the TLS handshake if the default
/// handler would.
/// </summary>
internal sealed class KtlsConnector
{
    private static readonly List<SslApplicationProtocol> s_http2 = [SslApplicationProtocol.Http2];
    private static readonly List<SslApplicationProtocol> s_http2Or11 = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11];

    private readonly SocketsHttpHandler _handler;
    private readonly KtlsOptions _options;
    private readonly Func<SocketsHttpConnectionContext, CancellationToken, ValueTask<Stream>> _connect;

    public KtlsConnector(SocketsHttpHandler handler, KtlsOptions options)
        : this(handler, options, handler.ConnectCallback)
    {
    }

    private KtlsConnector(
        SocketsHttpHandler handler,
        KtlsOptions options,
        Func<SocketsHttpConnectionContext, CancellationToken, ValueTask<Stream>>? inner)
    {
        _handler = handler;
        _options = options;
        Inner = inner;
        _connect = inner ?? ConnectTcpAsync;
    }

    /// <summary>Gets the callback that connects, or <see langword="null"/> if this class connects itself.</summary>
    public Func<SocketsHttpConnectionContext, CancellationToken, ValueTask<Stream>>? Inner { get; }

    /// <summary>Gets a value that indicates whether woven code created the handler. That code does not know of this callback.</summary>
    public bool IsWoven { get; init; }

    /// <summary>
    /// Gets a value that indicates whether a validation callback gets the request as its sender. The callback that an
    /// <see cref="HttpClientHandler"/> sets on its inner handler expects that.
    /// </summary>
    public bool PassesRequestAsSender { get; init; }

    /// <summary>Returns the connector that was woven into a handler, or null.</summary>
    public static KtlsConnector? FindWoven(SocketsHttpHandler handler) =>
        handler.ConnectCallback?.Target is KtlsConnector { IsWoven: true } connector ? connector : null;

    /// <summary>Returns the same with another callback that connects.</summary>
    public Func<SocketsHttpConnectionContext, CancellationToken, ValueTask<Stream>> WithInner(
        Func<SocketsHttpConnectionContext, CancellationToken, ValueTask<Stream>>? inner) =>
        new KtlsConnector(_handler, _options, inner) { IsWoven = IsWoven, PassesRequestAsSender = PassesRequestAsSender }.ConnectAsync;

    public async ValueTask<Stream> ConnectAsync(SocketsHttpConnectionContext context, CancellationToken cancellationToken)
    {
        Stream transport = await _connect(context, cancellationToken).ConfigureAwait(false);
        if (!IsDirectTls(context) || transport is SslStream)
        {
            return transport;
        }

        KtlsStream stream = new(transport, leaveInnerStreamOpen: false, _options);
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
    /// Returns whether the connection is TLS directly to the server. The callback is also called for http:// and for
    /// proxies. The address of a proxy differs from the request's; the default handler performs TLS to it or through
    /// it.
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
            // RFC 9113, section 9.2.1: HTTP/2 forbids renegotiation.
            options.AllowRenegotiation = false;
        }

        if (PassesRequestAsSender && options.RemoteCertificateValidationCallback is { } validate)
        {
            options.RemoteCertificateValidationCallback =
                (_, certificate, chain, errors) => validate(request, certificate, chain, errors);
        }

        return options;
    }

    /// <summary>
    /// Returns the protocols for ALPN, or null for HTTP/1.1 alone, which the default handler requests without ALPN.
    /// </summary>
    private static List<SslApplicationProtocol>? ProtocolsFor(HttpRequestMessage request) =>
        (request.Version.Major >= 2, request.VersionPolicy) switch
        {
            (true, not HttpVersionPolicy.RequestVersionOrLower) => s_http2,
            (true, _) or (_, HttpVersionPolicy.RequestVersionOrHigher) => s_http2Or11,
            _ => null,
        };

    /// <summary>Returns the Host header without its port, and an IPv6 literal without its brackets.</summary>
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
