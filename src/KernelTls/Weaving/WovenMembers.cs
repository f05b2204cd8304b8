using System.ComponentModel;
using System.Diagnostics.CodeAnalysis;
using System.Net;
using System.Net.Security;
using System.Net.WebSockets;
using KernelTls.Http;

namespace KernelTls.Weaving;

/// <summary>
/// Replaces, in code that KernelTls.Weave has rewritten, the members of <see cref="SslStream"/> that a subclass cannot override, those
/// of a handler by which callers could see that the handler is woven, and the one by which <see cref="ClientWebSocket"/> connects with a handler
/// of its own. Matched by name and parameter types, the object first. Not for use by hand.
/// </summary>
[EditorBrowsable(EditorBrowsableState.Never)]
[SuppressMessage("Naming", "CA1707", Justification = "The names are those of the accessors that the methods replace.")]
public static class WovenMembers
{
    /// <inheritdoc cref="SslStream.AuthenticateAsClient(SslClientAuthenticationOptions)"/>
    public static void AuthenticateAsClient(SslStream stream, SslClientAuthenticationOptions sslClientAuthenticationOptions)
    {
        if (stream is KtlsStream own)
        {
            own.AuthenticateAsClient(sslClientAuthenticationOptions);
        }
        else
        {
            stream.AuthenticateAsClient(sslClientAuthenticationOptions);
        }
    }

    /// <inheritdoc cref="SslStream.AuthenticateAsClientAsync(SslClientAuthenticationOptions, CancellationToken)"/>
    public static Task AuthenticateAsClientAsync(
        SslStream stream, SslClientAuthenticationOptions sslClientAuthenticationOptions, CancellationToken cancellationToken) =>
        stream is KtlsStream own
            ? own.AuthenticateAsClientAsync(sslClientAuthenticationOptions, cancellationToken)
            : stream.AuthenticateAsClientAsync(sslClientAuthenticationOptions, cancellationToken);

    /// <inheritdoc cref="SslStream.AuthenticateAsServer(SslServerAuthenticationOptions)"/>
    public static void AuthenticateAsServer(SslStream stream, SslServerAuthenticationOptions sslServerAuthenticationOptions)
    {
        if (stream is KtlsStream own)
        {
            own.AuthenticateAsServer(sslServerAuthenticationOptions);
        }
        else
        {
            stream.AuthenticateAsServer(sslServerAuthenticationOptions);
        }
    }

    /// <inheritdoc cref="SslStream.AuthenticateAsServerAsync(SslServerAuthenticationOptions, CancellationToken)"/>
    public static Task AuthenticateAsServerAsync(
        SslStream stream, SslServerAuthenticationOptions sslServerAuthenticationOptions, CancellationToken cancellationToken) =>
        stream is KtlsStream own
            ? own.AuthenticateAsServerAsync(sslServerAuthenticationOptions, cancellationToken)
            : stream.AuthenticateAsServerAsync(sslServerAuthenticationOptions, cancellationToken);

    /// <inheritdoc cref="SslStream.AuthenticateAsServerAsync(ServerOptionsSelectionCallback, object, CancellationToken)"/>
    public static Task AuthenticateAsServerAsync(
        SslStream stream, ServerOptionsSelectionCallback optionsCallback, object? state, CancellationToken cancellationToken) =>
        stream is KtlsStream own
            ? own.AuthenticateAsServerAsync(optionsCallback, state, cancellationToken)
            : stream.AuthenticateAsServerAsync(optionsCallback, state, cancellationToken);

    /// <inheritdoc cref="SslStream.TransportContext"/>
    public static TransportContext get_TransportContext(SslStream stream) =>
        stream is KtlsStream own ? own.TransportContext : stream.TransportContext;

    /// <summary>Returns the callback that the application has set.</summary>
    public static Func<SocketsHttpConnectionContext, CancellationToken, ValueTask<Stream>>? get_ConnectCallback(
        SocketsHttpHandler handler) =>
        KtlsConnector.FindWoven(handler) is { } connector ? connector.Inner : handler.ConnectCallback;

    /// <summary>Sets the ConnectCallback of a woven handler. TLS runs over the stream that it returns.</summary>
    public static void set_ConnectCallback(
        SocketsHttpHandler handler, Func<SocketsHttpConnectionContext, CancellationToken, ValueTask<Stream>>? value) =>
        handler.ConnectCallback = KtlsConnector.FindWoven(handler) is { } connector ? connector.WithInner(value) : value;

    /// <inheritdoc cref="ClientWebSocket.ConnectAsync(Uri, CancellationToken)"/>
    public static Task ConnectAsync(ClientWebSocket socket, Uri uri, CancellationToken cancellationToken) =>
        WovenLibrary.IsActive && WebSocketInvokers.Find(socket.Options, uri) is { } invoker
            ? socket.ConnectAsync(uri, invoker, cancellationToken)
            : socket.ConnectAsync(uri, cancellationToken);
}
