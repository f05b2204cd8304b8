using System.Formats.Asn1;
using System.Net.Security;
using System.Runtime.InteropServices;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Interop;
using KernelTls.IO;

namespace KernelTls.Handshake;

/// <summary>
/// Provides what <see cref="SslStream.TransportContext"/> reads: an SSL* that knows the server's certificate, from which it
/// calculates tls-server-end-point (RFC 5929, section 4.1).
/// </summary>
/// <remarks>
/// <para>
/// The property cannot be overridden. HttpClient reads it, and so does any code that has a variable of type SslStream. The SSL*
/// of the connection belongs to its <see cref="TlsConnection"/> alone, so the base class gets another one, which is never
/// connected and has no secrets. tls-unique needs the messages of the handshake; the base class fails to calculate it.
/// </para>
/// <para>Streams with the same certificate share the SSL*. The most recent ones are kept for the streams to come.</para>
/// </remarks>
internal static class Bystanders
{
    private const int MaxKept = 64;
    private const int Tls12 = 0x0303;

    private static readonly Lock s_lock = new();
    private static readonly List<Bystander> s_recent = [];
    private static readonly Lazy<SafeHandle> s_context = new(RuntimeInternals.CreateSslContext);

    /// <summary>Makes the base class see the certificate, or none if it is null.</summary>
    /// <exception cref="IOException">OpenSSL is out of memory.</exception>
    public static void Publish(SslStream stream, X509Certificate2? certificate) =>
        RuntimeInternals.PublishSsl(stream, Of(certificate is null ? ReadOnlyMemory<byte>.Empty : certificate.RawDataMemory));

    /// <summary>Returns a handle of the caller's own.</summary>
    private static SafeHandle Of(ReadOnlyMemory<byte> certificate)
    {
        lock (s_lock)
        {
            int index = s_recent.FindIndex(r => r.Certificate.Span.SequenceEqual(certificate.Span));
            Bystander found = index >= 0 ? s_recent[index] : new Bystander(certificate, Create(certificate.Span));

            // The most recent one is the first.
            if (index != 0)
            {
                if (index > 0)
                {
                    s_recent.RemoveAt(index);
                }

                s_recent.Insert(0, found);
            }

            if (s_recent.Count > MaxKept)
            {
                s_recent[^1].Ssl.Dispose();
                s_recent.RemoveAt(MaxKept);
            }

            Check(KtlsNative.KtlsNative_BystanderReference(found.Ssl));
            return RuntimeInternals.OwnSsl(found.Ssl.DangerousGetHandle());
        }
    }

    private static unsafe SafeHandle Create(ReadOnlySpan<byte> certificate)
    {
        byte[] session = certificate.IsEmpty ? [] : EncodeSession(certificate);
        nint ssl;
        fixed (byte* bytes = session)
        {
            Check(KtlsNative.KtlsNative_BystanderCreate(s_context.Value, bytes, session.Length, &ssl));
        }

        return RuntimeInternals.OwnSsl(ssl);
    }

    /// <summary>
    /// Encodes an SSL_SESSION as i2d_SSL_SESSION does. OpenSSL has no other way to give a session a certificate. The suite must
    /// be one that OpenSSL knows; the session ID and the key are empty.
    /// </summary>
    private static byte[] EncodeSession(ReadOnlySpan<byte> certificate)
    {
        const int FormatVersion = 1;
        AsnWriter writer = new(AsnEncodingRules.DER);
        using (writer.PushSequence())
        {
            writer.WriteInteger(FormatVersion);
            writer.WriteInteger(Tls12);
            writer.WriteOctetString([0xC0, 0x2F]); // TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
            writer.WriteOctetString([]);
            writer.WriteOctetString([]);
            using (writer.PushSequence(new Asn1Tag(TagClass.ContextSpecific, 3)))
            {
                writer.WriteEncodedValue(certificate);
            }
        }

        return writer.Encode();
    }

    private static void Check(int errno)
    {
        if (errno != 0)
        {
            throw TlsErrors.Call("publishing the server's certificate", errno);
        }
    }

    private sealed record Bystander(ReadOnlyMemory<byte> Certificate, SafeHandle Ssl);
}
