namespace KernelTls.Handshake;

/// <summary>Specifies the alerts that managed code sends (RFC 8446, section 6.2).</summary>
internal enum TlsAlert
{
    HandshakeFailure = 40,
    InternalError = 80,
    UnrecognizedName = 112,
}
