using System.Net;
using System.Net.Security;
using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>
/// Calls the remaining non-virtual members by the stream's actual type, like <see cref="StreamHandshakes"/>, and
/// provides options for both ends.
/// </summary>
internal static class Handshakes
{
    public static Task HandshakeAsServerAsync(
        this SslStream stream, ServerOptionsSelectionCallback callback, object? state, CancellationToken cancellationToken = default) =>
        stream is KtlsStream own
            ? own.AuthenticateAsServerAsync(callback, state, cancellationToken)
            : stream.AuthenticateAsServerAsync(callback, state, cancellationToken);

    public static void ShakeClient(this SslStream stream, SslClientAuthenticationOptions options)
    {
        if (stream is KtlsStream own)
        {
            own.AuthenticateAsClient(options);
        }
        else
        {
            stream.AuthenticateAsClient(options);
        }
    }

    public static void ShakeServer(this SslStream stream, SslServerAuthenticationOptions options)
    {
        if (stream is KtlsStream own)
        {
            own.AuthenticateAsServer(options);
        }
        else
        {
            stream.AuthenticateAsServer(options);
        }
    }

    /// <summary>Returns the TransportContext, which is not virtual either.</summary>
    public static TransportContext ContextOf(this SslStream stream) =>
        stream is KtlsStream own ? own.TransportContext : stream.TransportContext;

    /// <summary>Returns options without resumption, so that tests do not affect each other.</summary>
    public static SslClientAuthenticationOptions ClientOptions(SslProtocols version) => new()
    {
        AllowTlsResume = false,
        TargetHost = "localhost",
        EnabledSslProtocols = version,
        CertificateChainPolicy = Certificates.Trust(),
    };

    public static SslServerAuthenticationOptions ServerOptions(SslProtocols version) => new()
    {
        ServerCertificateContext = Certificates.EcdsaContext,
        EnabledSslProtocols = version,
        CertificateChainPolicy = Certificates.Trust(),
    };
}
