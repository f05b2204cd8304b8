using System.Net;
using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Handshake;
using KernelTls.IO;

namespace KernelTls;

// The negotiated properties: from the session if there is one, otherwise from the base class.
public partial class KtlsStream
{
    private const string StrengthsAreObsolete = "Use NegotiatedCipherSuite instead.";

    /// <inheritdoc/>
    public override bool IsAuthenticated => _session is not null ? !_disposed : base.IsAuthenticated;

    /// <inheritdoc/>
    public override bool IsMutuallyAuthenticated =>
        _session is { } s
            ? !_disposed && s.RemoteCertificate is not null && s.LocalCertificate is not null
            : base.IsMutuallyAuthenticated;

    /// <inheritdoc/>
    public override bool IsEncrypted => _session is not null ? IsAuthenticated : base.IsEncrypted;

    /// <inheritdoc/>
    public override bool IsSigned => _session is not null ? IsAuthenticated : base.IsSigned;

    /// <inheritdoc/>
    public override bool IsServer => _isServer ?? base.IsServer;

    /// <inheritdoc/>
    public override SslProtocols SslProtocol => SessionOrNull is { } s ? s.Protocol : base.SslProtocol;

    /// <inheritdoc/>
    public override TlsCipherSuite NegotiatedCipherSuite => SessionOrNull is { } s ? s.CipherSuite : base.NegotiatedCipherSuite;

    /// <inheritdoc/>
    public override bool CheckCertRevocationStatus =>
        _session is { } s ? s.Settings.RevocationMode != X509RevocationMode.NoCheck : base.CheckCertRevocationStatus;

    /// <inheritdoc/>
    public override X509Certificate? LocalCertificate => SessionOrNull is { } s ? s.LocalCertificate : base.LocalCertificate;

    /// <inheritdoc/>
    public override X509Certificate? RemoteCertificate => SessionOrNull is { } s ? s.RemoteCertificate : base.RemoteCertificate;

    /// <inheritdoc/>
    [Obsolete(StrengthsAreObsolete, DiagnosticId = "SYSLIB0058")]
    public override CipherAlgorithmType CipherAlgorithm => SessionOrNull is { } s ? s.Strengths.Cipher : base.CipherAlgorithm;

    /// <inheritdoc/>
    [Obsolete(StrengthsAreObsolete, DiagnosticId = "SYSLIB0058")]
    public override int CipherStrength => SessionOrNull is { } s ? s.Strengths.CipherBits : base.CipherStrength;

    /// <inheritdoc/>
    [Obsolete(StrengthsAreObsolete, DiagnosticId = "SYSLIB0058")]
    public override HashAlgorithmType HashAlgorithm => SessionOrNull is { } s ? s.Strengths.Hash : base.HashAlgorithm;

    /// <inheritdoc/>
    [Obsolete(StrengthsAreObsolete, DiagnosticId = "SYSLIB0058")]
    public override int HashStrength => SessionOrNull is { } s ? s.Strengths.HashBits : base.HashStrength;

    /// <inheritdoc/>
    [Obsolete(StrengthsAreObsolete, DiagnosticId = "SYSLIB0058")]
    public override ExchangeAlgorithmType KeyExchangeAlgorithm => SessionOrNull is { } s ? s.Strengths.Exchange : base.KeyExchangeAlgorithm;

    /// <inheritdoc/>
    [Obsolete(StrengthsAreObsolete, DiagnosticId = "SYSLIB0058")]
    public override int KeyExchangeStrength => SessionOrNull is { } s ? s.Strengths.ExchangeBits : base.KeyExchangeStrength;

    /// <summary>Gets the channel bindings of this connection (RFC 5929).</summary>
    /// <remarks>
    /// The property of <see cref="SslStream"/> cannot be overridden. Through a variable of that type, a connection that
    /// OpenSSL performed the handshake for has the same <see cref="System.Security.Authentication.ExtendedProtection.ChannelBindingKind.Endpoint"/>,
    /// and <see cref="System.Security.Authentication.ExtendedProtection.ChannelBindingKind.Unique"/> fails.
    /// </remarks>
    public new TransportContext TransportContext => new TlsTransportContext(() => _disposed ? null : _session, base.TransportContext);

    /// <inheritdoc/>
    public override bool CanRead => _session is not null ? !_disposed && InnerStream.CanRead : base.CanRead;

    /// <inheritdoc/>
    public override bool CanWrite =>
        _session is { } s ? !_disposed && !s.Sender.Gate.IsClosed && InnerStream.CanWrite : base.CanWrite;

    /// <summary>
    /// Gets a value that indicates whether a session was resumed. Always false if the base class performed the
    /// handshake.
    /// </summary>
    internal bool IsResumed => _session is { IsResumed: true };

    /// <summary>
    /// Gets the session, or null if the base class performs or performed the handshake. Throws if the stream with a
    /// session is disposed, or if this end refused the peer.
    /// </summary>
    private TlsSession? SessionOrNull
    {
        get
        {
            ObjectDisposedException.ThrowIf(_disposed && _session is not null, this);
            if (_session is null)
            {
                ThrowIfPeerRefused();
            }

            return _session;
        }
    }
}
