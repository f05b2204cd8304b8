using System.Net.Security;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using System.Security.Authentication.ExtendedProtection;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Handshake;

namespace KernelTls.Interop;

/// <summary>Tests on dummies whether private members of the runtime behave as this library expects.</summary>
/// <remarks>
/// The members are looked up by name and types, which stay the same if a later version swaps two parameters or moves a
/// check elsewhere. Used once per process.
/// </remarks>
internal static class RuntimeCanary
{
    private const string Host = "canary.test";
    private const string OtherHost = "other.test";

    // Self-signed, for canary.test, valid from 2026 to 2126. Its key was not kept.
    private const string Certificate =
        "MIIBmjCCAUGgAwIBAgIUcHedxMkQzKqr7m5r+iplkH0jJLgwCgYIKoZIzj0EAwIwFjEUMBIGA1UEAwwLY2FuYXJ5LnRlc3Qw" +
        "IBcNMjYxMTI1MDI1MTI3WhgPMjEyNjExMDEwMjUxMjdaMBYxFDASBgNVBAMMC2NhbmFyeS50ZXN0MFkwEwYHKoZIzj0CAQYI" +
        "KoZIzj0DAQcDQgAEg4wfrEdjdl1d+nt8iGRJySQG55O8YFfiSH0m6uysS77RbBTQ4Q6PBvRPgokzFG7DtcafJP9DL3UVzHn0" +
        "jE9rqKNrMGkwHQYDVR0OBBYEFMu/6ZhwMCKytFvPeR8ysq3nZFz2MB8GA1UdIwQYMBaAFMu/6ZhwMCKytFvPeR8ysq3nZFz2" +
        "MA8GA1UdEwEB/wQFMAMBAf8wFgYDVR0RBA8wDYILY2FuYXJ5LnRlc3QwCgYIKoZIzj0EAwIDRwAwRAIgGJDeO8k+xJylzmt5" +
        "orQ9a+5yElhC1wnrxjKtte/6tbkCIFbQB3uuFtDBIsbEmcZktigMk6lhvNRLoway0H6JOSxm";

    private static readonly DateTime s_whenValid = new(2030, 1, 1, 0, 0, 0, DateTimeKind.Utc);

    /// <summary>Has the signature of <see cref="RuntimeInternals.ValidateCertificate"/>.</summary>
    public delegate SslPolicyErrors ValidateFunction(X509Chain chain, X509Certificate2 certificate, bool checkName, string host);

    /// <summary>Has the signature of <see cref="RuntimeInternals.Publish"/>.</summary>
    public delegate void PublishFunction(
        SslStream stream, SslProtocols protocol, TlsCipherSuite suite, byte[]? applicationProtocol, bool inHandshake);

    /// <summary>
    /// Returns a description of the difference, or an empty string. Does not throw. The native library must be initialized.
    /// </summary>
    public static string FindChange() =>
        FindChange(
            RuntimeInternals.ValidateCertificate,
            RuntimeInternals.Publish,
            RuntimeInternals.PublishTargetHost,
            Bystanders.Publish);

    /// <inheritdoc cref="FindChange()"/>
    /// <param name="validate">The function that validates a peer.</param>
    /// <param name="publish">The function that publishes the negotiated properties.</param>
    /// <param name="publishTargetHost">The function that publishes the name.</param>
    /// <param name="publishCertificate">The function that publishes the server's certificate.</param>
    public static string FindChange(
        ValidateFunction validate,
        PublishFunction publish,
        Action<SslStream, string> publishTargetHost,
        Action<SslStream, X509Certificate2> publishCertificate)
    {
        try
        {
            using X509Certificate2 certificate = X509CertificateLoader.LoadCertificate(Convert.FromBase64String(Certificate));
            string difference = FindInValidation(validate, certificate);
            difference = difference.Length != 0 ? difference : FindInPublishing(publish, publishTargetHost);
            return difference.Length != 0 ? difference : FindInBinding(publishCertificate, certificate);
        }
        catch (Exception e)
        {
            return $"A trial of the runtime's private members failed: {e.GetType().Name}: {e.Message}";
        }
    }

    private static string FindInValidation(ValidateFunction validate, X509Certificate2 certificate)
    {
        // The order matters: a certificate that was accepted once, as on a resumed session, must be checked again for
        // the other name.
        return Try(true, true, Host, SslPolicyErrors.None)
            ?? Try(true, true, OtherHost, SslPolicyErrors.RemoteCertificateNameMismatch)
            ?? Try(true, false, OtherHost, SslPolicyErrors.None)
            ?? Try(false, true, Host, SslPolicyErrors.RemoteCertificateChainErrors)
            ?? "";

        string? Try(bool isTrusted, bool checksName, string host, SslPolicyErrors expected)
        {
            SslPolicyErrors found = Validate(isTrusted, checksName, host);
            return found == expected ? null
                : $"CertificateValidation.BuildChainAndVerifyProperties reports a certificate for {Host} that is "
                    + $"{(isTrusted ? "trusted" : "not trusted")} as {found}, by the name {host} which is "
                    + $"{(checksName ? "checked" : "not checked")}; expected {expected}";
        }

        SslPolicyErrors Validate(bool isTrusted, bool checksName, string host)
        {
            using X509Chain chain = new();
            chain.ChainPolicy.TrustMode = X509ChainTrustMode.CustomRootTrust;
            chain.ChainPolicy.RevocationMode = X509RevocationMode.NoCheck;
            chain.ChainPolicy.DisableCertificateDownloads = true;
            chain.ChainPolicy.VerificationTime = s_whenValid;
            if (isTrusted)
            {
                chain.ChainPolicy.CustomTrustStore.Add(certificate);
            }

            return validate(chain, certificate, checksName, host);
        }
    }

    private static string FindInPublishing(PublishFunction publish, Action<SslStream, string> publishTargetHost)
    {
        using SslStream stream = new(new MemoryStream());
        publish(
            stream,
            SslProtocols.Tls13,
            TlsCipherSuite.TLS_AES_128_GCM_SHA256,
            SslApplicationProtocol.Http2.Protocol.ToArray(),
            inHandshake: true);
        publishTargetHost(stream, Host);
        return stream.NegotiatedApplicationProtocol != SslApplicationProtocol.Http2
                ? $"SslStream.NegotiatedApplicationProtocol returns '{stream.NegotiatedApplicationProtocol}' after h2 was published"
            : stream.SslProtocol != SslProtocols.Tls13 || stream.NegotiatedCipherSuite != TlsCipherSuite.TLS_AES_128_GCM_SHA256
                ? $"SslStream returns {stream.SslProtocol} {stream.NegotiatedCipherSuite} after TLS 1.3 and AES-128-GCM were published"
            : stream.TargetHostName != Host
                ? $"SslStream.TargetHostName returns '{stream.TargetHostName}' after {Host} was published"
            : "";
    }

    private static string FindInBinding(Action<SslStream, X509Certificate2> publish, X509Certificate2 certificate)
    {
        using SslStream stream = new(new MemoryStream());
        publish(stream, certificate);
        using ChannelBinding? binding = stream.TransportContext.GetChannelBinding(ChannelBindingKind.Endpoint);
        byte[] found = new byte[binding?.Size ?? 0];
        if (binding is not null)
        {
            Marshal.Copy(binding.DangerousGetHandle(), found, 0, found.Length);
        }

        // Not EndsWith, which is not compiled ahead of time.
        ReadOnlySpan<byte> hash = SHA256.HashData(certificate.RawDataMemory.Span);
        return found.Length >= hash.Length && found.AsSpan(found.Length - hash.Length).SequenceEqual(hash)
            ? ""
            : "SslStream.TransportContext returns another channel binding than that of the published certificate";
    }
}
