using System.Net.Security;
using System.Runtime.ExceptionServices;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Interop;

namespace KernelTls.Handshake;

/// <summary>
/// Validates the peer's certificate while the handshake waits for the result: chain, name and policy as SslStream does,
/// then the application's callback. Not thread-safe; used by one handshake.
/// </summary>
/// <param name="sender">The stream to pass to callbacks.</param>
/// <param name="settings">The settings to validate the peer by.</param>
/// <param name="beforeCallback">
/// The action to run before the application's callback, which may read the stream's properties.
/// </param>
internal sealed class PeerVerifier(object sender, HandshakeSettings settings, Action beforeCallback)
{
    private const string ServerAuthentication = "1.3.6.1.5.5.7.3.1";
    private const string ClientAuthentication = "1.3.6.1.5.5.7.3.2";

    // A callback sees the usages. SslStream gives the number also as the friendly name.
    private static readonly Oid s_serverAuthentication = new(ServerAuthentication, ServerAuthentication);
    private static readonly Oid s_clientAuthentication = new(ClientAuthentication, ClientAuthentication);

    private bool _isDue;

    /// <summary>Gets the peer's leaf certificate, after it was received.</summary>
    public X509Certificate2? Certificate { get; private set; }

    /// <summary>Client: gets the result that resumed sessions can rely on.</summary>
    public CachedValidationResult? CachedResult { get; private set; }

    /// <summary>
    /// Gets the reason for refusing the peer. It is thrown instead of OpenSSL's error for the refusal.
    /// </summary>
    public ExceptionDispatchInfo? Refusal { get; private set; }

    /// <summary>Gets a value that indicates whether the <see cref="Refusal"/> is a decision, and not an exception of the callback.</summary>
    public bool HasDecided { get; private set; }

    /// <summary>
    /// Validates the peer's certificates. Never throws: an exception becomes the <see cref="Refusal"/>.
    /// </summary>
    /// <param name="chain">The certificates (X509*), leaf first.</param>
    /// <param name="count">The number of certificates.</param>
    /// <param name="staple">Where the OCSP response of the server is.</param>
    /// <param name="ssl">The connection (SSL*) that holds it.</param>
    /// <returns>An <see cref="X509VerifyCode"/>.</returns>
    public unsafe int Verify(nint* chain, int count, NativeStaple staple, nint ssl)
    {
        try
        {
            bool isSecondCall = _isDue || Certificate is not null;
            bool isAttached = staple == NativeStaple.Received
                && RuntimeInternals.TryAttachStaple(ssl, chain[0], isSecondCall);
            if (Certificate is not null)
            {
                // The verdict did not depend on the response, which comes with the certificate nevertheless.
                return X509VerifyCode.Ok;
            }

            if (staple != NativeStaple.None && !isAttached && !isSecondCall && DependsOnStaple)
            {
                _isDue = true;
                return X509VerifyCode.Later;
            }

            X509Certificate2[] certificates = new X509Certificate2[count];
            for (int i = 0; i < count; i++)
            {
                // The constructor takes its own reference.
                certificates[i] = new X509Certificate2(chain[i]);
            }

            return Validate(certificates, isResumed: false);
        }
        catch (Exception e)
        {
            // No exception may propagate into OpenSSL's frames. It is reported as the handshake's failure.
            Refusal = ExceptionDispatchInfo.Capture(e);
            return X509VerifyCode.InternalError;
        }
    }

    /// <summary>
    /// Gets a value that indicates whether an OCSP response can change the result: by a check of revocation, here or in
    /// the callback.
    /// </summary>
    private bool DependsOnStaple => settings.ValidationCallback is not null
        || (settings.ChainPolicy?.RevocationMode ?? settings.RevocationMode) != X509RevocationMode.NoCheck;

    /// <summary>
    /// Decides, by the callback or the options, when a server's handshake completed without a client certificate.
    /// </summary>
    public void ValidateAbsence()
    {
        if (settings.ValidationCallback is not null || settings.PeerCertificateRequired)
        {
            Decide(null, SslPolicyErrors.RemoteCertificateNotAvailable);
        }
    }

    /// <summary>Validates the chain of a resumed session again, unless the earlier result still holds.</summary>
    /// <param name="chain">The session's certificates, leaf first.</param>
    /// <param name="cached">The earlier result.</param>
    public void ValidateResumed(X509Certificate2[] chain, CachedValidationResult? cached)
    {
        if (cached?.AppliesTo(settings, DateTime.UtcNow, Environment.TickCount64) != true)
        {
            Validate(chain, isResumed: true);
            return;
        }

        Certificate = chain[0];
        CachedResult = cached;
        foreach (X509Certificate2 issuer in chain.AsSpan(1))
        {
            issuer.Dispose();
        }
    }

    private int Validate(X509Certificate2[] certificates, bool isResumed)
    {
        Certificate = certificates[0];
        using X509Chain chain = new();
        chain.ChainPolicy = settings.ChainPolicy?.Clone() ?? DefaultPolicy();
        if (chain.ChainPolicy.ApplicationPolicy.Count == 0)
        {
            chain.ChainPolicy.ApplicationPolicy.Add(settings.IsServer ? s_clientAuthentication : s_serverAuthentication);
        }

        // Only a callback can see that SslStream adds the leaf, too. It may dispose that object without harm.
        if (settings.ValidationCallback is not null && !settings.IsServer && (isResumed || RuntimeBehavior.ShowsLeafAmongIssuers))
        {
            chain.ChainPolicy.ExtraStore.Add(new X509Certificate2(Certificate.Handle));
        }

        for (int i = 1; i < certificates.Length; i++)
        {
            chain.ChainPolicy.ExtraStore.Add(certificates[i]);
        }

        SslPolicyErrors errors = Check(chain, Certificate);
        try
        {
            return Decide(chain, errors) ? X509VerifyCode.Ok
                : settings.ValidationCallback is not null && RuntimeBehavior.RefusesInHandshake ? X509VerifyCode.Application
                : X509VerifyCode.For(errors, chain);
        }
        finally
        {
            if (settings.ValidationCallback is null)
            {
                Free(chain, certificates);
            }
        }
    }

    /// <summary>
    /// Builds the chain. A certificate that OpenSSL could parse may still be unreadable for .NET, which parses keys
    /// only when it uses them.
    /// </summary>
    private SslPolicyErrors Check(X509Chain chain, X509Certificate2 certificate)
    {
        try
        {
            SslPolicyErrors errors = RuntimeInternals.ValidateCertificate(chain, certificate, settings.CheckName, settings.TargetHost);
            if (errors == SslPolicyErrors.None)
            {
                CachedResult = CachedValidationResult.TryCreate(settings, chain);
            }

            return errors;
        }
        catch (CryptographicException e) when (!HasReadableKey(certificate))
        {
            throw new AuthenticationException("The remote certificate cannot be read.", e);
        }
    }

    /// <summary>
    /// Returns false if it is the peer's certificate that .NET cannot use, and not one of the caller's.
    /// </summary>
    private static bool HasReadableKey(X509Certificate2 certificate)
    {
        try
        {
            using AsymmetricAlgorithm? key = (AsymmetricAlgorithm?)certificate.GetECDsaPublicKey() ?? certificate.GetRSAPublicKey();
            return true;
        }
        catch (CryptographicException)
        {
            return false;
        }
    }

    private X509ChainPolicy DefaultPolicy()
    {
        X509ChainPolicy policy = new()
        {
            RevocationMode = settings.RevocationMode,
            RevocationFlag = X509RevocationFlag.ExcludeRoot,

            // A client's certificate names any address. A server that asks it is sent there by strangers.
            DisableCertificateDownloads = settings.IsServer && !RuntimeBehavior.ServersDownloadCertificates,
        };
        if (settings.Trust is { } trust)
        {
            policy.TrustMode = X509ChainTrustMode.CustomRootTrust;
            policy.CustomTrustStore.AddRange(trust.Roots);
        }

        return policy;
    }

    /// <summary>Disposes the chain. Not called if there is a callback, which may have kept the certificates.</summary>
    private static void Free(X509Chain chain, X509Certificate2[] certificates)
    {
        foreach (X509ChainElement element in chain.ChainElements)
        {
            element.Certificate.Dispose();
        }

        foreach (X509Certificate2 extra in certificates.AsSpan(1))
        {
            extra.Dispose();
        }
    }

    private bool Decide(X509Chain? chain, SslPolicyErrors errors)
    {
        if (settings.ValidationCallback is { } callback)
        {
            beforeCallback();
            if (callback(sender, Certificate, chain, errors))
            {
                return true;
            }

            return Refuse("The remote certificate was rejected by the RemoteCertificateValidationCallback.");
        }

        return errors switch
        {
            SslPolicyErrors.None => true,
            SslPolicyErrors.RemoteCertificateChainErrors => Refuse(
                "The remote certificate is invalid because of errors in the certificate chain: "
                + string.Join(", ", chain!.ChainStatus.Select(s => s.Status.ToString()).Distinct())),
            _ => Refuse($"The remote certificate is invalid: {errors}."),
        };
    }

    private bool Refuse(string message)
    {
        Refusal = ExceptionDispatchInfo.Capture(new AuthenticationException(message));
        HasDecided = true;
        return false;
    }
}
