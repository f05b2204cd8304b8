using KernelTls.Http;

namespace KernelTls;

/// <summary>Kernel TLS for <see cref="HttpClient"/>.</summary>
public static class SocketsHttpHandlerKtlsExtensions
{
    /// <summary>
    /// Makes the handler's https connections go through a <see cref="KtlsStream"/>, HTTP/1.1 and HTTP/2 alike.
    /// </summary>
    /// <remarks>
    /// <para>
    /// The handler's <see cref="SocketsHttpHandler.SslOptions"/> apply as they do without this call; ALPN follows the request's
    /// version policy, the target host its Host header or URI. http:// connections and connections to a proxy get the bare
    /// socket: TLS inside a CONNECT tunnel is the stock one. A <see cref="SocketsHttpHandler.ConnectCallback"/> that was set
    /// before goes on connecting; where it gives anything but a <see cref="System.Net.Sockets.NetworkStream"/>, the connection
    /// is a plain SslStream over that.
    /// </para>
    /// <para>
    /// A failed handshake arrives as an <see cref="HttpRequestException"/> around the
    /// <see cref="System.Security.Authentication.AuthenticationException"/> or <see cref="IOException"/>, as from the stock
    /// handler; its <see cref="HttpRequestException.HttpRequestError"/> is
    /// <see cref="HttpRequestError.ConnectionError"/>, which the handler gives to whatever a ConnectCallback throws.
    /// </para>
    /// <para>
    /// A server that closes without close_notify ends the stream, as for the stock handler, which then sends a request again on
    /// another connection where it may: <see cref="KtlsOptions.AllowTruncation"/>.
    /// </para>
    /// <para>Call it before the handler's first request; not thread-safe.</para>
    /// </remarks>
    /// <param name="handler">The handler; its ConnectCallback is set.</param>
    /// <param name="options">
    /// How kernel TLS is used; <see langword="null"/>: <see cref="KtlsMode.Preferred"/>, as <c>UseKernelTls()</c> means on a web host
    /// and on an endpoint. Options whose <see cref="KtlsOptions.Mode"/> was not set say <see cref="KtlsMode.Environment"/>.
    /// </param>
    /// <returns>The same handler.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="handler"/> is <see langword="null"/>.</exception>
    /// <exception cref="InvalidOperationException">The handler has sent a request already.</exception>
    public static SocketsHttpHandler UseKernelTls(this SocketsHttpHandler handler, KtlsOptions? options = null)
    {
        ArgumentNullException.ThrowIfNull(handler);
        handler.ConnectCallback = new KtlsConnector(handler, options ?? new KtlsOptions { Mode = KtlsMode.Preferred }).ConnectAsync;
        return handler;
    }
}
