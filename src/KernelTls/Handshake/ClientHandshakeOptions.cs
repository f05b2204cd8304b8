using System.Net;
using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.Handshake;

/// <summary>
/// Converts <see cref="SslClientAuthenticationOptions"/> to settings, or returns the reason why the base class must
/// handle them.
/// </summary>
internal static class ClientHandshakeOptions
{
    public static KtlsFallbackReason TryCreate(
        SslClientAuthenticationOptions options, in StreamCallbacks stream, KernelRequest kernel, out HandshakeSettings? settings)
    {
        settings = null;
#pragma warning disable SYSLIB0040 // NoEncryption and AllowNoEncryption are obsolete, but a caller can still pass them.
        if (options.EncryptionPolicy != EncryptionPolicy.RequireEncryption)
        {
            return KtlsFallbackReason.EncryptionPolicy;
        }
#pragma warning restore SYSLIB0040

        RemoteCertificateValidationCallback? validation = stream.ValidationWith(options.RemoteCertificateValidationCallback);
        ClientCertificateSelector selector = new(
            stream.Sender,
            options.TargetHost ?? "",
            options.ClientCertificates,
            stream.SelectionWith(options.LocalCertificateSelectionCallback));

        // Checks versions and suites first: the selection callback runs once. After it has run, falling back to the
        // base class would call it again.
        string host = HandshakeOptions.NormalizeHost(options.TargetHost);
        KtlsFallbackReason reason = HandshakeOptions.TryCreateContextKey(
            isServer: false,
            ContextFlags.None,
            options.EnabledSslProtocols,
            options.CipherSuitesPolicy,
            options.ApplicationProtocols,
            certificate: null,
            HandshakeOptions.SignatureAlgorithmsFor(options.AllowRsaPssPadding, options.AllowRsaPkcs1Padding),
            out TlsContextKey? key);
        if (reason != KtlsFallbackReason.None)
        {
            return reason;
        }

        SslStreamCertificateContext? certificate = options.ClientCertificateContext ?? selector.SelectFirst();
        bool choosesLater = certificate is null && selector.MayChooseLater;
        bool resumes = !choosesLater && options.AllowTlsResume && !Resumption.Disabled && Resumption.ClientSessions > 0
            && options.CipherSuitesPolicy is null && host.Length > 0 && !IPAddress.TryParse(host, out _);

        // A client always verifies; managed code validates the certificate. Renegotiation is never accepted, because
        // kernel TLS does not support it. Post-handshake authentication is offered if there may be a certificate.
        ContextFlags flags = ContextFlags.VerifyPeer
            | (resumes ? ContextFlags.ClientSessions : ContextFlags.NoTickets)
            | (choosesLater ? ContextFlags.PauseAtCertificate : ContextFlags.None)
            | (certificate is not null || selector.MayHaveCertificate ? ContextFlags.PostHandshakeAuth : ContextFlags.None)
            | kernel.Flags;
        settings = new HandshakeSettings
        {
            IsServer = false,
            Context = key! with { Flags = key.Flags | flags, Certificate = certificate },
            Kernel = kernel,
            TargetHost = host,
            GivenHost = options.TargetHost ?? "",
            ServerName = HandshakeOptions.ServerNameOf(host),
            CheckName = options.CertificateChainPolicy?.VerificationFlags.HasFlag(X509VerificationFlags.IgnoreInvalidName) != true,
            ValidationCallback = validation,
            ChainPolicy = options.CertificateChainPolicy?.Clone(),
            RevocationMode = options.CertificateRevocationCheckMode,
            Trust = certificate is null ? null : RuntimeInternals.TrustOf(certificate),
            PeerCertificateRequired = true,
            Resumes = resumes,
            Revalidates = Resumption.Revalidates,
            CertificateSelector = choosesLater ? selector : null,
        };
        return KtlsFallbackReason.None;
    }
}
