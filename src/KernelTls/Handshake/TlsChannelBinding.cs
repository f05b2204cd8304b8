using System.Net;
using System.Runtime.InteropServices;
using System.Security.Authentication.ExtendedProtection;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.IO;

namespace KernelTls.Handshake;

/// <summary>
/// Represents a channel binding token (RFC 5929) in .NET's format: the eight integers of SEC_CHANNEL_BINDINGS, the
/// prefix that names the kind, and the data.
/// </summary>
internal sealed unsafe class TlsChannelBinding : ChannelBinding
{
    private const int HeaderSize = 8 * sizeof(int);
    private const int LengthIndex = 6;
    private const int OffsetIndex = 7;

    private TlsChannelBinding(ReadOnlySpan<byte> prefix, ReadOnlySpan<byte> data)
        : base(ownsHandle: true)
    {
        Size = HeaderSize + prefix.Length + data.Length;
        SetHandle((nint)NativeMemory.AllocZeroed((nuint)Size));
        Span<byte> token = new((void*)handle, Size);
        Span<int> header = MemoryMarshal.Cast<byte, int>(token[..HeaderSize]);
        header[LengthIndex] = prefix.Length + data.Length;
        header[OffsetIndex] = HeaderSize;
        prefix.CopyTo(token[HeaderSize..]);
        data.CopyTo(token[(HeaderSize + prefix.Length)..]);
    }

    public override int Size { get; }

    public override bool IsInvalid => handle == 0;

    /// <summary>
    /// Creates tls-unique (section 3.1): the first Finished message of the handshake, which is the server's if a
    /// session was resumed.
    /// </summary>
    public static TlsChannelBinding Unique(TlsSession session) =>
        new("tls-unique:"u8, session.GetFinished(ofPeer: session.Settings.IsServer != session.IsResumed));

    /// <summary>
    /// Creates tls-server-end-point (section 4.1): a hash of the server's certificate. Returns <see langword="null"/>
    /// if the certificate's signature names no hash.
    /// </summary>
    public static TlsChannelBinding? Endpoint(TlsSession session)
    {
        X509Certificate2? certificate = session.Settings.IsServer ? session.LocalCertificate : session.RemoteCertificate;
        byte[]? hash = certificate is null ? null : Hash(certificate);
        return hash is null ? null : new TlsChannelBinding("tls-server-end-point:"u8, hash);
    }

    protected override bool ReleaseHandle()
    {
        NativeMemory.Free((void*)handle);
        return true;
    }

    /// <summary>
    /// Hashes the certificate with the hash of its signature, or with SHA-256 instead of MD5 and SHA-1.
    /// </summary>
    private static byte[]? Hash(X509Certificate2 certificate) => certificate.SignatureAlgorithm.Value switch
    {
        "1.2.840.113549.1.1.4" or "1.2.840.113549.1.1.5" or "1.2.840.10040.4.3" or "1.2.840.10045.4.1" // MD5, SHA-1
            or "1.2.840.113549.1.1.11" or "1.2.840.10045.4.3.2" or "2.16.840.1.101.3.4.3.2" =>
            SHA256.HashData(certificate.RawDataMemory.Span),
        "1.2.840.113549.1.1.12" or "1.2.840.10045.4.3.3" => SHA384.HashData(certificate.RawDataMemory.Span),
        "1.2.840.113549.1.1.13" or "1.2.840.10045.4.3.4" => SHA512.HashData(certificate.RawDataMemory.Span),
        _ => null,
    };
}

/// <summary>
/// Provides a stream's channel bindings: those of its session if there is one, otherwise the base class's.
/// </summary>
internal sealed class TlsTransportContext(Func<TlsSession?> currentSession, TransportContext managed) : TransportContext
{
    public override ChannelBinding? GetChannelBinding(ChannelBindingKind kind)
    {
        if (currentSession() is not { } session)
        {
            return managed.GetChannelBinding(kind);
        }

        return kind switch
        {
            ChannelBindingKind.Unique => TlsChannelBinding.Unique(session),
            ChannelBindingKind.Endpoint => TlsChannelBinding.Endpoint(session),
            _ => null,
        };
    }
}
