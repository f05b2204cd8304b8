using System.Net;
using System.Net.WebSockets;

namespace KernelTls.Weaving;

/// <summary>
/// Provides the invokers of woven calls of <see cref="ClientWebSocket"/>: their handlers are set as its own are, and connect through a
/// <see cref="KtlsStream"/>. Thread-safe.
/// </summary>
/// <remarks>They live as long as the process, as those of ClientWebSocket do. A handler keeps no connection.</remarks>
internal static class WebSocketInvokers
{
    private const string Owner = "System.Net.WebSockets.Client";

    private static readonly WovenLibrary s_library = new(Owner);

    // A new object has .NET's stand-in for the proxy of the system.
    private static readonly IWebProxy? s_systemProxy = NewProxy();

    private static readonly HttpMessageInvoker s_withSystemProxy = Create(useProxy: true);
    private static readonly HttpMessageInvoker s_withoutProxy = Create(useProxy: false);

    /// <summary>
    /// Returns the invoker for a connection, or null if ClientWebSocket is to connect itself: without TLS, or because it takes no invoker with
    /// options that belong to its own handler.
    /// </summary>
    /// <param name="options">The options of the object.</param>
    /// <param name="uri">The address, or null, which ClientWebSocket refuses.</param>
    public static HttpMessageInvoker? Find(ClientWebSocketOptions options, Uri? uri) =>
        uri is { IsAbsoluteUri: true }
        && uri.Scheme == Uri.UriSchemeWss
        && !options.UseDefaultCredentials
        && options.Credentials is null
        && options.Cookies is null
        && options.RemoteCertificateValidationCallback is null
        && options.ClientCertificates.Count == 0
            ? options.Proxy is null ? s_withoutProxy : options.Proxy == s_systemProxy ? s_withSystemProxy : null
            : null;

    private static IWebProxy? NewProxy()
    {
        using ClientWebSocket socket = new();
        return socket.Options.Proxy;
    }

    private static HttpMessageInvoker Create(bool useProxy) => new(s_library.Weave(
        new SocketsHttpHandler { PooledConnectionLifetime = TimeSpan.Zero, UseCookies = false, UseProxy = useProxy }));
}
