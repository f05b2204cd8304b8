using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.Handshake;

/// <summary>
/// Converts <see cref="SslServerAuthenticationOptions"/> to settings, or returns the reason why the base class must
/// handle them.
/// </summary>
internal static class ServerHandshakeOptions
{
    private const string NoCertificate =
        "A server needs a certificate with a private key: set ServerCertificateContext, ServerCertificate or ServerCertificateSelectionCallback.";

    public static KtlsFallbackReason TryCreate(
        SslServerAuthenticationOptions options, in StreamCallbacks stream, KernelRequest kernel, out HandshakeSettings? settings)
    {
        settings = null;
        ThrowIfContradictory(options, stream);
        if (options.AllowRenegotiation)
        {
            return KtlsFallbackReason.Renegotiation;
        }

        if (options.ServerCertificateSelectionCallback is null && stream.Selection is null)
        {
            return TryCreate(options, stream, CertificateOf(options), kernel, out settings);
        }

        // The callback runs when the ClientHello has been received. Everything else is checked now, while falling back
        // to the base class is still possible.
        KtlsFallbackReason reason = TryCreate(options, stream, certificate: null, kernel, out HandshakeSettings? chosen);
        if (reason == KtlsFallbackReason.None)
        {
            StreamCallbacks callbacks = stream;
            settings = Selecting(
                kernel,
                (hello, _) => ValueTask.FromResult(WithCertificate(chosen!, Select(options, callbacks, hello.ServerName))));
        }

        return reason;
    }

    /// <summary>
    /// Returns settings for a server whose options are chosen when the ClientHello has been received.
    /// </summary>
    public static HandshakeSettings Selecting(
        ServerOptionsSelectionCallback callback, object? state, StreamCallbacks stream, KernelRequest kernel) =>
        Selecting(kernel, async (hello, cancellationToken) =>
        {
            SslServerAuthenticationOptions options = await callback(
                (SslStream)stream.Sender, hello, state, cancellationToken).ConfigureAwait(false);
            return Choose(options, stream, hello.ServerName, kernel);
        });

    /// <summary>
    /// Returns the settings for the chosen options. Throws if only the base class supports them, because it cannot take
    /// over any more.
    /// </summary>
    private static HandshakeSettings? Choose(
        SslServerAuthenticationOptions options, in StreamCallbacks stream, string serverName, KernelRequest kernel)
    {
        ThrowIfContradictory(options, stream);
        SslStreamCertificateContext? certificate =
            options.ServerCertificateSelectionCallback is null && stream.Selection is null
                ? CertificateOf(options)
                : Select(options, stream, serverName);
        if (certificate is null)
        {
            return null;
        }

        // A peer may renegotiate only if the kernel holds no keys.
        kernel = options.AllowRenegotiation && kernel.FallbackReason == KtlsFallbackReason.None
            ? KernelRequest.Nothing(KtlsFallbackReason.Renegotiation)
            : kernel;
        KtlsFallbackReason reason = TryCreate(options, stream, certificate, kernel, out HandshakeSettings? settings);
        return reason == KtlsFallbackReason.None ? settings : throw new KtlsNotAvailableException(
            reason,
            $"The options from the ServerOptionsSelectionCallback are not supported on this connection: {reason}. The "
            + "ClientHello has been read, so SslStream cannot take over. Pass such options without a callback, or use KtlsMode.Disabled.");
    }

    private static HandshakeSettings Selecting(KernelRequest kernel, ServerSelection selection)
    {
        _ = HandshakeOptions.TryCreateContextKey(
            isServer: true, ContextFlags.PauseAtClientHello | kernel.Flags, SslProtocols.None, null, null, null, null, out TlsContextKey? key);
        return new HandshakeSettings { IsServer = true, Context = key!, Kernel = kernel, Selection = selection };
    }

    private static KtlsFallbackReason TryCreate(
        SslServerAuthenticationOptions options,
        in StreamCallbacks stream,
        SslStreamCertificateContext? certificate,
        KernelRequest kernel,
        out HandshakeSettings? settings)
    {
        settings = null;
#pragma warning disable SYSLIB0040 // NoEncryption and AllowNoEncryption are obsolete, but a caller can still pass them.
        if (options.EncryptionPolicy != EncryptionPolicy.RequireEncryption)
        {
            return KtlsFallbackReason.EncryptionPolicy;
        }
#pragma warning restore SYSLIB0040

        RemoteCertificateValidationCallback? validation = stream.ValidationWith(options.RemoteCertificateValidationCallback);
        ContextFlags flags = kernel.Flags;
        if (options.ClientCertificateRequired)
        {
            // A callback may accept a client without a certificate. Without a callback, such a client is refused with
            // an alert.
            flags |= ContextFlags.VerifyPeer | (validation is null ? ContextFlags.RequirePeer : ContextFlags.None);
        }

        if (!options.AllowTlsResume || options.CipherSuitesPolicy is not null || Resumption.Disabled)
        {
            flags |= ContextFlags.NoTickets;
        }

        if (options.AllowRenegotiation)
        {
            flags |= ContextFlags.AllowRenegotiation;
        }

        KtlsFallbackReason reason = HandshakeOptions.TryCreateContextKey(
            isServer: true,
            flags,
            options.EnabledSslProtocols,
            options.CipherSuitesPolicy,
            options.ApplicationProtocols,
            certificate,
            HandshakeOptions.SignatureAlgorithmsFor(options.AllowRsaPssPadding, options.AllowRsaPkcs1Padding),
            out TlsContextKey? key);
        if (reason != KtlsFallbackReason.None)
        {
            return reason;
        }

        HandshakeSettings made = new()
        {
            IsServer = true,
            Context = key!,
            Kernel = kernel,
            ValidationCallback = validation,
            ChainPolicy = options.CertificateChainPolicy?.Clone(),
            RevocationMode = options.CertificateRevocationCheckMode,
            PeerCertificateRequired = options.ClientCertificateRequired,
        };
        settings = certificate is null ? made : WithCertificate(made, certificate);
        return KtlsFallbackReason.None;
    }

    private static HandshakeSettings? WithCertificate(HandshakeSettings settings, SslStreamCertificateContext? certificate) =>
        certificate is null ? null : settings with
        {
            Context = settings.Context with { Certificate = certificate },
            Trust = RuntimeInternals.TrustOf(certificate),
        };

    private static SslStreamCertificateContext CertificateOf(SslServerAuthenticationOptions options) =>
        options.ServerCertificateContext
        ?? LocalCertificates.ServerContextOf(options.ServerCertificate)
        ?? throw (options.ServerCertificate is null
            ? new NotSupportedException(NoCertificate)
            : new AuthenticationException(NoCertificate));

    /// <summary>Calls the callback. Returns <see langword="null"/> if it has no certificate for this name.</summary>
    private static SslStreamCertificateContext? Select(
        SslServerAuthenticationOptions options, in StreamCallbacks stream, string serverName)
    {
        X509Certificate? chosen;
        if (options.ServerCertificateSelectionCallback is { } callback)
        {
            chosen = callback(stream.Sender, serverName);
            if (chosen is null)
            {
                return null;
            }
        }
        else
        {
            X509CertificateCollection own = [];
            if (options.ServerCertificateContext is not null || options.ServerCertificate is not null)
            {
                own.Add(CertificateOf(options).TargetCertificate);
            }

            chosen = stream.Selection!(stream.Sender, "", own, null, []);
        }

        return LocalCertificates.ContextOf(chosen) ?? throw new NotSupportedException(NoCertificate);
    }

    private static void ThrowIfContradictory(SslServerAuthenticationOptions options, in StreamCallbacks stream)
    {
        if (options.ServerCertificateSelectionCallback is not null &&
            (options.ServerCertificate is not null || options.ServerCertificateContext is not null || stream.Selection is not null))
        {
            throw new InvalidOperationException(
                "ServerCertificateSelectionCallback was set together with another source of the certificate. Set only one of them.");
        }
    }
}
