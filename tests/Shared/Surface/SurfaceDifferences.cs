namespace KernelTls.Tests;

/// <summary>Contains the accepted differences from what the stock stack shows, which docs/differences.md lists.</summary>
internal static class SurfaceDifferences
{
    private const string Any = "*";
    private const string Absent = SurfaceText.Absent;

    private const string Texts = "an exception has a text of this library's own; its type, and those inside it, are compared on their own";

    private const string NoSslException =
        "OpenSSL's error is the inner exception itself; SslStream puts an internal exception with OpenSSL's number between";


    private const string OwnCertificate = "RFC 5929, 4.1: the binding is a hash of the server's certificate at both ends";

    private const string InConnectCallback =
        "to HttpClient the connection failed, because the handshake is a part of its ConnectCallback; only an AuthenticationException counts as TLS";

    private const string NothingToBind = "the handshake has failed, so that there is nothing to bind to";

    private const string InCallback = "the binding is there when the handshake has ended, and a callback runs before; no authentication is bound to another connection";

    private const string OwnReset =
        "the socket's own exception; ConnectionResetException is that of Kestrel's transport, which has not started";

    /// <summary>Gets what a peer sees.</summary>
    public static IReadOnlyList<SurfaceDifference> Wire { get; } =
    [
        new(
            ["client, *(refused)", "server, *(refused)"],
            ["alerts", "messages", "records of the handshake", "Finished", "ClientKeyExchange", "NewSessionTicket.*", "NewSessionTickets", "again: *"],
            Any,
            Any,
            "RFC 8446, 6.2: a refused peer gets an alert with the reason within the handshake, as on .NET 11; SslStream completes the handshake and closes")
        {
            When = FaultCondition.Net10,
        },
        new(
            ["server, *, ServerCertificateSelectionCallback, none", "server, *, ServerCertificateContext, options callback that throws"],
            ["alerts", "records of the handshake"],
            Any,
            Any,
            "RFC 8446, 6.2: an alert with the reason (112 is unrecognized_name); SslStream closes the connection"),
        new(
            ["client, *, EnabledSslProtocols, disposed without a shutdown", "server, *, ServerCertificateContext, disposed without a shutdown"],
            ["alerts"],
            Absent,
            "warning close_notify",
            "RFC 8446, 6.1: the peer can tell the end from a truncation"),
        new(["client, *, TargetHost, with a dot"], ["ClientHello.server_name"], "name.test.", "name.test", "RFC 6066, 3: the name has no trailing dot"),
        new(["client, *, TargetHost, international"], ["ClientHello.server_name"], Any, "xn--bcher-kva.test", "RFC 6066, 3: the name has A-labels"),
        new(
            ["server, TLS 1.3, AllowTlsResume, off, two connections", "server, TLS 1.3, CipherSuitesPolicy"],
            ["NewSessionTicket.*", "NewSessionTickets", "again: NewSessionTicket.*", "again: NewSessionTickets"],
            Any,
            Any,
            "without resumption (a CipherSuitesPolicy turns it off at both) there are no tickets; SslStream sends two that it does not accept"),
    ];

    /// <summary>Gets what a caller of the stream sees.</summary>
    public static IReadOnlyList<SurfaceDifference> Caller { get; } =
    [
        new(
            ["*"],
            ["connected: TransportContext.Unique", "used: TransportContext.Unique", "shut down: TransportContext.Unique", "after that: TransportContext.Unique"],
            Any,
            "throws SslException",
            "the base class does not have the connection's SSL; KtlsStream.TransportContext has the binding"),
        new(["*"], ["in *: *TransportContext.Unique"], Any, Any, InCallback),
        new(["client, *, selection callback*"], ["in LocalCertificateSelectionCallback: *TransportContext.Endpoint"], Any, Any, InCallback),
        new(["client, *, session resumed*"], ["in RemoteCertificateValidationCallback: *TransportContext.Endpoint"], Any, Any, InCallback)
        {
            When = FaultCondition.Net11,
        },
        new(["*, refused by the callback*"], ["failed: *TransportContext.*"], Any, Any, NothingToBind),
        new(["server, *"], ["failed: *TransportContext.*", "disposed: *TransportContext.*"], "null", "throws *", NothingToBind),
        new(
            ["server, *"],
            ["connected: *TransportContext.Endpoint", "used: *TransportContext.Endpoint", "shut down: *TransportContext.Endpoint", "after that: *TransportContext.Endpoint", "in *: *TransportContext.Endpoint"],
            Any,
            "the hash of CN=*",
            OwnCertificate),
        new(["*"], ["failure's message"], Any, Any, Texts),
        new(
            ["client, *, session resumed, refused by the callback"],
            ["failed: *"],
            "throws AuthenticationException",
            Any,
            "a resumed connection is refused as any other, and its members say that it is not authenticated; SslStream repeats the refusal")
        {
            When = FaultCondition.Net11,
        },
        new(["server, *, refused: no certificate*"], ["failed: *"], "throws AuthenticationException", "throws AuthenticationException <- CryptographicException", NoSslException)
        {
            When = FaultCondition.Net10,
        },
        new(["*"], ["failure"], "*AuthenticationException*", "*AuthenticationException <- CryptographicException", NoSslException),
        new(["*, a * after the peer's an unprotected record"], ["failure"], "IOException <- *", "IOException <- CryptographicException", NoSslException),
        new(
            ["server, *, options callback"],
            ["in ServerOptionsSelectionCallback: protocols"],
            "Tls, Tls12*",
            "Tls1*",
            "RFC 8446, 4.1.2: the versions that the client offers"),
    ];

    /// <summary>Gets what a caller of HttpClient sees.</summary>
    public static IReadOnlyList<SurfaceDifference> HttpClient { get; } =
    [
        new(
            ["*"],
            ["Message"],
            "The SSL connection could not be established, see inner exception.",
            "*(localhost:port)",
            "HttpClient passes on the text of what its ConnectCallback throws, and the handshake is performed there"),
        new(
            ["*, a server that ends in the handshake", "*, a server that resets in the handshake"],
            ["HttpRequestError"],
            "SecureConnectionError",
            "ConnectionError",
            InConnectCallback),
        new(["*, refused by the callback's exception"], ["HttpRequestError"], "SecureConnectionError", "ConnectionError", InConnectCallback)
        {
            When = FaultCondition.Net10,
        },
        new(["*"], ["exception"], "*AuthenticationException*", "*AuthenticationException <- CryptographicException", NoSslException),
        new(
            ["*, a server that answers with a record that is no TLS"],
            ["exception"],
            "*IOException <- AuthenticationException",
            "*IOException <- CryptographicException",
            NoSslException),
    ];

    /// <summary>Gets what an application on Kestrel sees.</summary>
    public static IReadOnlyList<SurfaceDifference> Kestrel { get; } =
    [
        new(
            ["*"],
            ["connection: ITlsConnectionFeature.TryGetChannelBindingBytes(*"],
            Any,
            Any,
            "Kestrel asks the base class, which has the hash of the server's certificate (RFC 5929, 4.1) and not the connection's SSL; KtlsStream.TransportContext has both")
        {
            When = FaultCondition.Net11,
        },
        new(
            ["*"],
            ["log of Microsoft.AspNetCore.Server.Kestrel.Https.Internal.HttpsConnectionMiddleware"],
            Any,
            "*FailedToReadChannelBinding*",
            "as for TryGetChannelBindingBytes")
        {
            When = FaultCondition.Net11,
        },
        new(["*"], ["connection: IKtlsFeature*", "connection, ended: IKtlsFeature*", "log of KernelTls.*"], Absent, Any, "the data paths of the connection"),
        new(
            ["*"],
            ["connection*: SslStream.CanTimeout", "connection*: SslStream.ReadTimeout", "connection*: SslStream.WriteTimeout"],
            Any,
            Any,
            "the stream lies on the socket, which has timeouts; SslStream lies on a pipe"),
        new(
            ["*"],
            ["connection, ended: IConnectionTransportFeature.Transport"],
            "present",
            "throws InvalidOperationException",
            "if the handshake has failed, nothing is left to read: it was on the socket"),
        new(["*"], ["log of *.HttpsConnectionMiddleware"], "*(AuthenticationException*", "*(AuthenticationException <- CryptographicException)", NoSslException),
        new(
            ["*, a client that resets"],
            ["log of *.HttpsConnectionMiddleware"],
            "*(ConnectionResetException <- SocketException ConnectionReset)",
            "*(IOException <- SocketException ConnectionReset)",
            OwnReset),
        new(
            ["*"],
            ["connection, ended: ITlsHandshakeFeature.Exception"],
            "AuthenticationException*",
            "AuthenticationException <- CryptographicException",
            NoSslException)
        {
            When = FaultCondition.Net11,
        },
        new(
            ["*, a client that resets"],
            ["connection, ended: ITlsHandshakeFeature.Exception"],
            "ConnectionResetException <- SocketException ConnectionReset",
            "IOException <- SocketException ConnectionReset",
            OwnReset)
        {
            When = FaultCondition.Net11,
        },
        new(
            ["*, refused: no client certificate"],
            ["connection, ended: ITlsHandshakeFeature.*"],
            Any,
            Any,
            "the feature shows what had been negotiated when the client was refused")
        {
            When = FaultCondition.Net11,
        },
        new(
            ["*"],
            ["connection*: ITlsHandshakeFeature.HostName"],
            SurfaceText.Empty,
            "localhost",
            "the name that the client sent; the stock server has it only if a callback selects the certificate or the options"),
    ];
}
