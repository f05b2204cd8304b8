using System.Net.Security;
using KernelTls.Interop;

namespace KernelTls.Handshake;

/// <summary>Turns <see cref="SslClientAuthenticationOptions"/> into settings, or says why they stay with the base class.</summary>
internal static class ClientHandshakeOptions
{
    public static KtlsFallbackReason TryCreate(
        SslClientAuthenticationOptions options,
        RemoteCertificateValidationCallback? constructorCallback,
        bool enableKtls,
        out HandshakeSettings? settings)
    {
        settings = null;
        if (options.LocalCertificateSelectionCallback is not null || options.ClientCertificates is { Count: > 0 })
        {
            return KtlsFallbackReason.ClientCertificateSelection;
        }

        if (!options.AllowRsaPssPadding || !options.AllowRsaPkcs1Padding)
        {
            return KtlsFallbackReason.RsaPaddingRestricted;
        }

#pragma warning disable SYSLIB0040 // NoEncryption and AllowNoEncryption are obsolete, and still values that a caller can pass.
        if (options.EncryptionPolicy != EncryptionPolicy.RequireEncryption)
        {
            return KtlsFallbackReason.EncryptionPolicy;
        }
#pragma warning restore SYSLIB0040

        if (options.ClientCertificateContext is { } certificate)
        {
            if (RuntimeInternals.HasTrust(certificate))
            {
                return KtlsFallbackReason.CertificateTrust;
            }

            if (!PrivateKey.IsUsable(certificate.TargetCertificate))
            {
                return KtlsFallbackReason.PrivateKeyNotUsable;
            }
        }

        // A client always verifies; the verdict is managed code's. Renegotiation is never answered: kernel TLS has none.
        // A client keeps no session yet, so it asks for no ticket either.
        ContextFlags flags = ContextFlags.VerifyPeer | ContextFlags.NoTickets
            | (enableKtls ? ContextFlags.EnableKtls : ContextFlags.None);
        KtlsFallbackReason reason = HandshakeOptions.TryCreateContextKey(
            isServer: false,
            flags,
            options.EnabledSslProtocols,
            options.CipherSuitesPolicy,
            options.ApplicationProtocols,
            options.ClientCertificateContext,
            out TlsContextKey? key);
        if (reason != KtlsFallbackReason.None)
        {
            return reason;
        }

        string host = HandshakeOptions.NormalizeHost(options.TargetHost);
        settings = new HandshakeSettings
        {
            IsServer = false,
            Context = key!,
            TargetHost = host,
            GivenHost = options.TargetHost ?? "",
            ServerName = HandshakeOptions.ServerNameOf(host),
            ValidationCallback = options.RemoteCertificateValidationCallback ?? constructorCallback,
            ChainPolicy = options.CertificateChainPolicy?.Clone(),
            RevocationMode = options.CertificateRevocationCheckMode,
            PeerCertificateRequired = true,
        };
        return KtlsFallbackReason.None;
    }
}
