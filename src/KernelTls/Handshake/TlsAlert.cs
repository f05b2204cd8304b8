namespace KernelTls.Handshake;

/// <summary>The alerts that managed code decides on (RFC 8446, section 6.2).</summary>
internal enum TlsAlert
{
    HandshakeFailure = 40,
    InternalError = 80,
    UnrecognizedName = 112,
}
