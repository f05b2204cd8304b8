using System.Net;
using System.Runtime.InteropServices;
using System.Security.Authentication.ExtendedProtection;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.IO;

namespace KernelTls.Handshake;

/// <summary>
/// A channel binding token (RFC 5929) in the form that .NET's consumers expect: the eight integers of SEC_CHANNEL_BINDINGS,
/// then the prefix that names the kind, then its data.
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

    /// <summary>tls-unique (section 3.1): the first Finished message of the handshake, which is the server's where a session was resumed.</summary>
    public static TlsChannelBinding Unique(TlsSession session) =>
        new("tls-unique:"u8, session.GetFinished(ofPeer: session.Settings.IsServer != session.IsResumed));

    /// <summary>tls-server-end-point (section 4.1): a hash of the server's certificate; <see langword="null"/> where its signature names none.</summary>
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

    /// <summary>By the hash of the certificate's signature, SHA-256 in place of MD5 and SHA-1.</summary>
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

/// <summary>A stream's channel bindings: of its session once there is one, and otherwise the base class's.</summary>
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
