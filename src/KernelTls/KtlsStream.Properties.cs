using System.Net;
using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Handshake;
using KernelTls.IO;

namespace KernelTls;

// What was negotiated: the session's answer where there is one, else the base class's.
public partial class KtlsStream
{
    private const string StrengthsAreObsolete = "Use NegotiatedCipherSuite instead.";

    /// <inheritdoc/>
    public override bool IsAuthenticated => _session is not null ? !_disposed : base.IsAuthenticated;

    /// <inheritdoc/>
    public override bool IsMutuallyAuthenticated =>
        _session is { } s ? s.RemoteCertificate is not null && LocalCertificate is not null : base.IsMutuallyAuthenticated;

    /// <inheritdoc/>
    public override bool IsEncrypted => _session is not null ? IsAuthenticated : base.IsEncrypted;

    /// <inheritdoc/>
    public override bool IsSigned => _session is not null ? IsAuthenticated : base.IsSigned;

    /// <inheritdoc/>
    public override bool IsServer => _isServer ?? base.IsServer;

    /// <inheritdoc/>
    public override SslProtocols SslProtocol => Alive is { } s ? s.Protocol : base.SslProtocol;

    /// <inheritdoc/>
    public override TlsCipherSuite NegotiatedCipherSuite => Alive is { } s ? s.CipherSuite : base.NegotiatedCipherSuite;

    /// <inheritdoc/>
    public override bool CheckCertRevocationStatus =>
        Alive is { } s ? s.Settings.RevocationMode != X509RevocationMode.NoCheck : base.CheckCertRevocationStatus;

    /// <inheritdoc/>
    public override X509Certificate? LocalCertificate => Alive is { } s ? s.LocalCertificate : base.LocalCertificate;

    /// <inheritdoc/>
    public override X509Certificate? RemoteCertificate => Alive is { } s ? s.RemoteCertificate : base.RemoteCertificate;

    /// <inheritdoc/>
    [Obsolete(StrengthsAreObsolete, DiagnosticId = "SYSLIB0058")]
    public override CipherAlgorithmType CipherAlgorithm => Alive is { } s ? s.Strengths.Cipher : base.CipherAlgorithm;

    /// <inheritdoc/>
    [Obsolete(StrengthsAreObsolete, DiagnosticId = "SYSLIB0058")]
    public override int CipherStrength => Alive is { } s ? s.Strengths.CipherBits : base.CipherStrength;

    /// <inheritdoc/>
    [Obsolete(StrengthsAreObsolete, DiagnosticId = "SYSLIB0058")]
    public override HashAlgorithmType HashAlgorithm => Alive is { } s ? s.Strengths.Hash : base.HashAlgorithm;

    /// <inheritdoc/>
    [Obsolete(StrengthsAreObsolete, DiagnosticId = "SYSLIB0058")]
    public override int HashStrength => Alive is { } s ? s.Strengths.HashBits : base.HashStrength;

    /// <inheritdoc/>
    [Obsolete(StrengthsAreObsolete, DiagnosticId = "SYSLIB0058")]
    public override ExchangeAlgorithmType KeyExchangeAlgorithm => Alive is { } s ? s.Strengths.Exchange : base.KeyExchangeAlgorithm;

    /// <inheritdoc/>
    [Obsolete(StrengthsAreObsolete, DiagnosticId = "SYSLIB0058")]
    public override int KeyExchangeStrength => Alive is { } s ? s.Strengths.ExchangeBits : base.KeyExchangeStrength;

    /// <summary>
    /// Channel bindings of this connection (RFC 5929). Through a variable of type <see cref="SslStream"/>, which does not let
    /// it be overridden, a connection that OpenSSL shook hands on has none.
    /// </summary>
    public new TransportContext TransportContext => new TlsTransportContext(() => _disposed ? null : _session, base.TransportContext);

    /// <inheritdoc/>
    public override bool CanRead => _session is not null ? !_disposed && InnerStream.CanRead : base.CanRead;

    /// <inheritdoc/>
    public override bool CanWrite =>
        _session is { } s ? !_disposed && !s.Sender.IsClosed && InnerStream.CanWrite : base.CanWrite;

    /// <summary>The session of an earlier connection was resumed; false also where the base class shook hands.</summary>
    internal bool IsResumed => _session is { IsResumed: true };

    /// <summary>The session, or null where the base class shook hands.</summary>
    private TlsSession? Alive
    {
        get
        {
            ObjectDisposedException.ThrowIf(_disposed && _session is not null, this);
            return _session;
        }
    }
}
