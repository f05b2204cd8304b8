using System.Net.Security;
using KernelTls.Interop;

namespace KernelTls.Handshake;

/// <summary>Turns <see cref="SslServerAuthenticationOptions"/> into settings, or says why they stay with the base class.</summary>
internal static class ServerHandshakeOptions
{
    public static KtlsFallbackReason TryCreate(
        SslServerAuthenticationOptions options,
        RemoteCertificateValidationCallback? constructorCallback,
        bool enableKtls,
        out HandshakeSettings? settings)
    {
        settings = null;
        KtlsFallbackReason reason = WhyNotOffloadable(options);
        if (reason != KtlsFallbackReason.None)
        {
            return reason;
        }

        SslStreamCertificateContext? certificate = options.ServerCertificateContext
            ?? CertificateContexts.Get(options.ServerCertificate);
        if (certificate is null || !PrivateKey.IsUsable(certificate.TargetCertificate))
        {
            return KtlsFallbackReason.PrivateKeyNotUsable;
        }

        RemoteCertificateValidationCallback? callback = options.RemoteCertificateValidationCallback ?? constructorCallback;
        ContextFlags flags = enableKtls ? ContextFlags.EnableKtls : ContextFlags.None;
        if (options.ClientCertificateRequired)
        {
            // A callback may accept a client without a certificate; without one, its absence is refused with an alert.
            // No resumption: a resumed session would skip the verdict on the client's certificate.
            flags |= ContextFlags.VerifyPeer | ContextFlags.NoTickets
                | (callback is null ? ContextFlags.RequirePeer : ContextFlags.None);
        }

        if (!options.AllowTlsResume)
        {
            flags |= ContextFlags.NoTickets;
        }

        reason = HandshakeOptions.TryCreateContextKey(
            isServer: true,
            flags,
            options.EnabledSslProtocols,
            options.CipherSuitesPolicy,
            options.ApplicationProtocols,
            certificate,
            out TlsContextKey? key);
        if (reason != KtlsFallbackReason.None)
        {
            return reason;
        }

        settings = new HandshakeSettings
        {
            IsServer = true,
            Context = key!,
            ValidationCallback = callback,
            ChainPolicy = options.CertificateChainPolicy?.Clone(),
            RevocationMode = options.CertificateRevocationCheckMode,
            PeerCertificateRequired = options.ClientCertificateRequired,
        };
        return KtlsFallbackReason.None;
    }

    private static KtlsFallbackReason WhyNotOffloadable(SslServerAuthenticationOptions options)
    {
        if (options.ServerCertificateSelectionCallback is not null)
        {
            return KtlsFallbackReason.ServerCertificateSelection;
        }

        if (options.AllowRenegotiation)
        {
            return KtlsFallbackReason.Renegotiation;
        }

        if (!options.AllowRsaPssPadding || !options.AllowRsaPkcs1Padding)
        {
            return KtlsFallbackReason.RsaPaddingRestricted;
        }

        if (options.ServerCertificateContext is { } context && RuntimeInternals.HasTrust(context))
        {
            return KtlsFallbackReason.CertificateTrust;
        }

#pragma warning disable SYSLIB0040 // NoEncryption and AllowNoEncryption are obsolete, and still values that a caller can pass.
        return options.EncryptionPolicy != EncryptionPolicy.RequireEncryption
            ? KtlsFallbackReason.EncryptionPolicy
            : KtlsFallbackReason.None;
#pragma warning restore SYSLIB0040
    }
}
