using KernelTls;
using KernelTls.Http;

namespace System.Net.Http;

/// <summary>Adds kernel TLS to the handlers of <see cref="HttpClient"/>.</summary>
public static class SocketsHttpHandlerKtlsExtensions
{
    /// <summary>
    /// Makes the handler use <see cref="KtlsStream"/> for its https connections, with HTTP/1.1 and HTTP/2.
    /// </summary>
    /// <remarks>
    /// <para>
    /// The handler's <see cref="SocketsHttpHandler.SslOptions"/> apply as they do without this call. ALPN follows the
    /// request's version policy. The target host is taken from its Host header or URI. http:// connections and
    /// connections to a proxy use the plain socket: the default SslStream handles TLS inside a CONNECT tunnel. A
    /// <see cref="SocketsHttpHandler.ConnectCallback"/> that was set before still makes the connections. If it returns
    /// a stream other than a <see cref="System.Net.Sockets.NetworkStream"/>, the connection uses a plain SslStream over
    /// that stream.
    /// </para>
    /// <para>
    /// A failed handshake throws an <see cref="HttpRequestException"/> around the
    /// <see cref="System.Security.Authentication.AuthenticationException"/> or <see cref="IOException"/>, as the
    /// default handler does. For an AuthenticationException its <see cref="HttpRequestException.HttpRequestError"/> is
    /// <see cref="HttpRequestError.SecureConnectionError"/>, as there. For an IOException it is
    /// <see cref="HttpRequestError.ConnectionError"/>, because the handshake is a part of a ConnectCallback.
    /// </para>
    /// <para>
    /// If a server closes the connection without close_notify, the stream ends, as with the default handler, which
    /// retries the request on another connection if permitted. See <see cref="KtlsOptions.RequireCloseNotify"/>.
    /// </para>
    /// <para>Call this method before the handler's first request. It is not thread-safe.</para>
    /// </remarks>
    /// <param name="handler">The handler whose ConnectCallback is set.</param>
    /// <param name="options">
    /// The kernel TLS options. If they are <see langword="null"/>, the mode is <see cref="KtlsMode.Preferred"/>, as for
    /// <c>UseKernelTls()</c> on a web host and on an endpoint. Options whose <see cref="KtlsOptions.Mode"/> was not set
    /// use <see cref="KtlsMode.Environment"/>.
    /// </param>
    /// <returns>The same handler, so that calls can be chained.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="handler"/> is <see langword="null"/>.</exception>
    /// <exception cref="InvalidOperationException">The handler has already sent a request.</exception>
    public static SocketsHttpHandler UseKernelTls(this SocketsHttpHandler handler, KtlsOptions? options = null)
    {
        ArgumentNullException.ThrowIfNull(handler);
        handler.ConnectCallback = new KtlsConnector(handler, options ?? new KtlsOptions { Mode = KtlsMode.Preferred }).ConnectAsync;
        return handler;
    }
}
