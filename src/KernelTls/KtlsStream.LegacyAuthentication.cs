using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls;

// The overloads without options. Like the base class, each one creates options and calls the options-based overload.
public partial class KtlsStream
{
    /// <inheritdoc/>
    public override void AuthenticateAsClient(string targetHost) =>
        AuthenticateAsClient(ClientOptions(targetHost, null, SslProtocols.None, false));

    /// <inheritdoc/>
    public override void AuthenticateAsClient(
        string targetHost, X509CertificateCollection? clientCertificates, bool checkCertificateRevocation) =>
        AuthenticateAsClient(ClientOptions(targetHost, clientCertificates, SslProtocols.None, checkCertificateRevocation));

    /// <inheritdoc/>
    public override void AuthenticateAsClient(
        string targetHost,
        X509CertificateCollection? clientCertificates,
        SslProtocols enabledSslProtocols,
        bool checkCertificateRevocation) =>
        AuthenticateAsClient(ClientOptions(targetHost, clientCertificates, enabledSslProtocols, checkCertificateRevocation));

    /// <inheritdoc/>
    public override Task AuthenticateAsClientAsync(string targetHost) =>
        AuthenticateAsClientAsync(ClientOptions(targetHost, null, SslProtocols.None, false));

    /// <inheritdoc/>
    public override Task AuthenticateAsClientAsync(
        string targetHost, X509CertificateCollection? clientCertificates, bool checkCertificateRevocation) =>
        AuthenticateAsClientAsync(ClientOptions(targetHost, clientCertificates, SslProtocols.None, checkCertificateRevocation));

    /// <inheritdoc/>
    public override Task AuthenticateAsClientAsync(
        string targetHost,
        X509CertificateCollection? clientCertificates,
        SslProtocols enabledSslProtocols,
        bool checkCertificateRevocation) =>
        AuthenticateAsClientAsync(ClientOptions(targetHost, clientCertificates, enabledSslProtocols, checkCertificateRevocation));

    /// <inheritdoc/>
    public override IAsyncResult BeginAuthenticateAsClient(
        string targetHost, AsyncCallback? asyncCallback, object? asyncState) =>
        TaskToAsyncResult.Begin(AuthenticateAsClientAsync(targetHost), asyncCallback, asyncState);

    /// <inheritdoc/>
    public override IAsyncResult BeginAuthenticateAsClient(
        string targetHost,
        X509CertificateCollection? clientCertificates,
        bool checkCertificateRevocation,
        AsyncCallback? asyncCallback,
        object? asyncState) =>
        TaskToAsyncResult.Begin(
            AuthenticateAsClientAsync(targetHost, clientCertificates, checkCertificateRevocation), asyncCallback, asyncState);

    /// <inheritdoc/>
    public override IAsyncResult BeginAuthenticateAsClient(
        string targetHost,
        X509CertificateCollection? clientCertificates,
        SslProtocols enabledSslProtocols,
        bool checkCertificateRevocation,
        AsyncCallback? asyncCallback,
        object? asyncState) =>
        TaskToAsyncResult.Begin(
            AuthenticateAsClientAsync(targetHost, clientCertificates, enabledSslProtocols, checkCertificateRevocation),
            asyncCallback,
            asyncState);

    /// <inheritdoc/>
    public override void EndAuthenticateAsClient(IAsyncResult asyncResult) => TaskToAsyncResult.End(asyncResult);

    /// <inheritdoc/>
    public override void AuthenticateAsServer(X509Certificate serverCertificate) =>
        AuthenticateAsServer(ServerOptions(serverCertificate, false, SslProtocols.None, false));

    /// <inheritdoc/>
    public override void AuthenticateAsServer(
        X509Certificate serverCertificate, bool clientCertificateRequired, bool checkCertificateRevocation) =>
        AuthenticateAsServer(
            ServerOptions(serverCertificate, clientCertificateRequired, SslProtocols.None, checkCertificateRevocation));

    /// <inheritdoc/>
    public override void AuthenticateAsServer(
        X509Certificate serverCertificate,
        bool clientCertificateRequired,
        SslProtocols enabledSslProtocols,
        bool checkCertificateRevocation) =>
        AuthenticateAsServer(
            ServerOptions(serverCertificate, clientCertificateRequired, enabledSslProtocols, checkCertificateRevocation));

    /// <inheritdoc/>
    public override Task AuthenticateAsServerAsync(X509Certificate serverCertificate) =>
        AuthenticateAsServerAsync(ServerOptions(serverCertificate, false, SslProtocols.None, false));

    /// <inheritdoc/>
    public override Task AuthenticateAsServerAsync(
        X509Certificate serverCertificate, bool clientCertificateRequired, bool checkCertificateRevocation) =>
        AuthenticateAsServerAsync(
            ServerOptions(serverCertificate, clientCertificateRequired, SslProtocols.None, checkCertificateRevocation));

    /// <inheritdoc/>
    public override Task AuthenticateAsServerAsync(
        X509Certificate serverCertificate,
        bool clientCertificateRequired,
        SslProtocols enabledSslProtocols,
        bool checkCertificateRevocation) =>
        AuthenticateAsServerAsync(
            ServerOptions(serverCertificate, clientCertificateRequired, enabledSslProtocols, checkCertificateRevocation));

    /// <inheritdoc/>
    public override IAsyncResult BeginAuthenticateAsServer(
        X509Certificate serverCertificate, AsyncCallback? asyncCallback, object? asyncState) =>
        TaskToAsyncResult.Begin(AuthenticateAsServerAsync(serverCertificate), asyncCallback, asyncState);

    /// <inheritdoc/>
    public override IAsyncResult BeginAuthenticateAsServer(
        X509Certificate serverCertificate,
        bool clientCertificateRequired,
        bool checkCertificateRevocation,
        AsyncCallback? asyncCallback,
        object? asyncState) =>
        TaskToAsyncResult.Begin(
            AuthenticateAsServerAsync(serverCertificate, clientCertificateRequired, checkCertificateRevocation),
            asyncCallback,
            asyncState);

    /// <inheritdoc/>
    public override IAsyncResult BeginAuthenticateAsServer(
        X509Certificate serverCertificate,
        bool clientCertificateRequired,
        SslProtocols enabledSslProtocols,
        bool checkCertificateRevocation,
        AsyncCallback? asyncCallback,
        object? asyncState) =>
        TaskToAsyncResult.Begin(
            AuthenticateAsServerAsync(
                serverCertificate, clientCertificateRequired, enabledSslProtocols, checkCertificateRevocation),
            asyncCallback,
            asyncState);

    /// <inheritdoc/>
    public override void EndAuthenticateAsServer(IAsyncResult asyncResult) => TaskToAsyncResult.End(asyncResult);

    private SslClientAuthenticationOptions ClientOptions(
        string targetHost, X509CertificateCollection? clientCertificates, SslProtocols protocols, bool checkRevocation) => new()
        {
            TargetHost = targetHost,
            ClientCertificates = clientCertificates,
            EnabledSslProtocols = protocols,
            CertificateRevocationCheckMode = RevocationMode(checkRevocation),
            EncryptionPolicy = _encryptionPolicy,
        };

    private SslServerAuthenticationOptions ServerOptions(
        X509Certificate serverCertificate, bool clientCertificateRequired, SslProtocols protocols, bool checkRevocation) => new()
        {
            ServerCertificate = serverCertificate,
            ClientCertificateRequired = clientCertificateRequired,
            EnabledSslProtocols = protocols,
            CertificateRevocationCheckMode = RevocationMode(checkRevocation),
            EncryptionPolicy = _encryptionPolicy,
        };

    private static X509RevocationMode RevocationMode(bool check) =>
        check ? X509RevocationMode.Online : X509RevocationMode.NoCheck;
}
