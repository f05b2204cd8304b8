using System.Net;
using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.Handshake;

/// <summary>Turns <see cref="SslClientAuthenticationOptions"/> into settings, or says why they stay with the base class.</summary>
internal static class ClientHandshakeOptions
{
    public static KtlsFallbackReason TryCreate(
        SslClientAuthenticationOptions options, in StreamCallbacks stream, KernelRequest kernel, out HandshakeSettings? settings)
    {
        settings = null;
#pragma warning disable SYSLIB0040 // NoEncryption and AllowNoEncryption are obsolete, and still values that a caller can pass.
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

        // The versions and suites are looked at first: once the selection callback has run, the base class may not be asked
        // any more, because it would call it again.
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

        // A client always verifies; the verdict is managed code's. Renegotiation is never answered: kernel TLS has none.
        ContextFlags flags = ContextFlags.VerifyPeer
            | (resumes ? ContextFlags.ClientSessions : ContextFlags.NoTickets)
            | (choosesLater ? ContextFlags.PauseAtCertificate : ContextFlags.None)
            | (certificate is not null ? ContextFlags.PostHandshakeAuth : ContextFlags.None)
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
