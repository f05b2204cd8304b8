using System.Net.Security;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Interop;

namespace KernelTls.Handshake;

/// <summary>
/// Judges the peer's certificate while the handshake waits for the verdict: chain, name and policy as SslStream judges them,
/// then the user's callback. Not thread-safe; used by one handshake.
/// </summary>
/// <param name="sender">The stream, as callbacks see it.</param>
/// <param name="settings">What the peer is judged by.</param>
/// <param name="beforeCallback">Called before the user's callback looks at the stream.</param>
internal sealed class PeerVerifier(object sender, HandshakeSettings settings, Action beforeCallback)
{
    private static readonly Oid s_serverAuthentication = new("1.3.6.1.5.5.7.3.1");
    private static readonly Oid s_clientAuthentication = new("1.3.6.1.5.5.7.3.2");

    /// <summary>The peer's leaf, once it was seen.</summary>
    public X509Certificate2? Certificate { get; private set; }

    /// <summary>Client: what resumed sessions can rely on.</summary>
    public PeerVerdict? Verdict { get; private set; }

    /// <summary>Why the peer was refused: to be thrown in place of what OpenSSL makes of the refusal.</summary>
    public ExceptionDispatchInfo? Refusal { get; private set; }

    /// <summary>The function given to the shim, with <see cref="GCHandle"/> of a verifier as its state.</summary>
    [UnmanagedCallersOnly]
    public static unsafe int OnVerify(nint state, nint* chain, int count)
    {
        PeerVerifier verifier = (PeerVerifier)GCHandle.FromIntPtr(state).Target!;
        try
        {
            X509Certificate2[] certificates = new X509Certificate2[count];
            for (int i = 0; i < count; i++)
            {
                // Takes a reference of its own.
                certificates[i] = new X509Certificate2(chain[i]);
            }

            return verifier.Judge(certificates);
        }
        catch (Exception e)
        {
            // Nothing may escape into OpenSSL's frames. The exception is the handshake's outcome.
            verifier.Refusal = ExceptionDispatchInfo.Capture(e);
            return X509VerifyCode.InternalError;
        }
    }

    /// <summary>A server's handshake ended without a client certificate: the callback, or the options, decide.</summary>
    public void JudgeAbsence()
    {
        if (settings.ValidationCallback is not null || settings.PeerCertificateRequired)
        {
            Decide(null, SslPolicyErrors.RemoteCertificateNotAvailable);
        }
    }

    /// <summary>A resumed session vouches for a chain that was judged once; it is judged again, unless that verdict still holds.</summary>
    /// <param name="chain">The session's certificates, leaf first.</param>
    /// <param name="verdict">What is known of them.</param>
    public void JudgeResumed(X509Certificate2[] chain, PeerVerdict? verdict)
    {
        if (verdict?.Holds(settings, DateTime.UtcNow, Environment.TickCount64) != true)
        {
            Judge(chain);
            return;
        }

        Certificate = chain[0];
        Verdict = verdict;
        foreach (X509Certificate2 issuer in chain.AsSpan(1))
        {
            issuer.Dispose();
        }
    }

    private int Judge(X509Certificate2[] certificates)
    {
        Certificate = certificates[0];
        using X509Chain chain = new();
        chain.ChainPolicy = settings.ChainPolicy?.Clone() ?? DefaultPolicy();
        if (chain.ChainPolicy.ApplicationPolicy.Count == 0)
        {
            chain.ChainPolicy.ApplicationPolicy.Add(settings.IsServer ? s_clientAuthentication : s_serverAuthentication);
        }

        for (int i = 1; i < certificates.Length; i++)
        {
            chain.ChainPolicy.ExtraStore.Add(certificates[i]);
        }

        SslPolicyErrors errors = RuntimeInternals.Judge(chain, Certificate, settings.CheckName, settings.TargetHost);
        if (errors == SslPolicyErrors.None)
        {
            Verdict = PeerVerdict.Of(settings, chain);
        }

        try
        {
            return Decide(chain, errors) ? X509VerifyCode.Ok : X509VerifyCode.For(errors, chain);
        }
        finally
        {
            if (settings.ValidationCallback is null)
            {
                Free(chain, certificates);
            }
        }
    }

    private X509ChainPolicy DefaultPolicy()
    {
        X509ChainPolicy policy = new()
        {
            RevocationMode = settings.RevocationMode,
            RevocationFlag = X509RevocationFlag.ExcludeRoot,
        };
        if (settings.Trust is { } trust)
        {
            policy.TrustMode = X509ChainTrustMode.CustomRootTrust;
            policy.CustomTrustStore.AddRange(trust.Roots);
        }

        return policy;
    }

    /// <summary>Nobody else has seen the chain: a callback may have kept what it was shown.</summary>
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
        return false;
    }
}
