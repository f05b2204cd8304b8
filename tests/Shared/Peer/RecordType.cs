namespace KernelTls.Tests;

/// <summary>Contains the content types of TLS records (RFC 8446, section 5.1).</summary>
internal static class RecordType
{
    public const byte ChangeCipherSpec = 20;
    public const byte Alert = 21;
    public const byte Handshake = 22;
    public const byte ApplicationData = 23;
}
