using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Interop;

namespace KernelTls.Handshake;

/// <summary>
/// Reads the server name and the versions of a ClientHello (RFC 8446, section 4.1.2) as OpenSSL does: of a record, or of the
/// extensions that the shim copies.
/// </summary>
internal static class ClientHelloParser
{
    private const int RecordHeaderLength = 5;
    private const int RandomLength = 32;
    private const int MaxName = 255;
    private const int ServerNameExtension = 0;
    private const int SupportedVersionsExtension = 43;

    /// <summary>Parses a record. Returns false if it does not contain a complete, well-formed ClientHello.</summary>
    public static bool TryParse(ReadOnlySpan<byte> record, out SslClientHelloInfo hello)
    {
        hello = default;
        if (record.Length < RecordHeaderLength)
        {
            return false;
        }

        Bytes message = new(record[RecordHeaderLength..]);
        if (!message.TryReadNumber(1, out _)
            || !message.TryReadVector(3, out Bytes body)
            || !body.TryReadNumber(2, out int version)
            || !body.TryRead(RandomLength, out _)
            || !body.TryReadVector(1, out _)
            || !body.TryReadVector(2, out _)
            || !body.TryReadVector(1, out _))
        {
            return false;
        }

        string name = "";
        SslProtocols versions = ToProtocol(version);
        if (body.IsEmpty)
        {
            hello = new SslClientHelloInfo("", versions);
            return true;
        }

        if (!body.TryReadVector(2, out Bytes extensions) || !body.IsEmpty)
        {
            return false;
        }

        while (!extensions.IsEmpty)
        {
            if (!extensions.TryReadNumber(2, out int type) || !extensions.TryReadVector(2, out Bytes content))
            {
                return false;
            }

            if (type == ServerNameExtension)
            {
                name = ReadServerName(content.Rest);
            }
            else if (type == SupportedVersionsExtension)
            {
                versions = ReadVersions(content.Rest);
            }
        }

        hello = new SslClientHelloInfo(name, versions);
        return true;
    }

    /// <summary>Returns the name that a client asked for, or an empty string.</summary>
    public static string ServerNameOf(in ConnectionInfo info) =>
        ReadServerName(((ReadOnlySpan<byte>)info.ServerName)[..info.ServerNameLength]);

    /// <summary>
    /// Reads the server name, as applications get it. RFC 6066, section 3: the extension is a list of types and names, in which only
    /// one entry is meaningful.
    /// </summary>
    public static string ReadServerName(ReadOnlySpan<byte> content)
    {
        Bytes extension = new(content);
        bool isHostName = extension.TryReadVector(2, out Bytes list)
            && extension.IsEmpty
            && list.TryReadNumber(1, out int type)
            && type == 0;
        return isHostName
            && list.TryReadVector(2, out Bytes name)
            && list.IsEmpty
            && name.Rest.Length <= MaxName
            && !name.Rest.Contains((byte)0)
            ? HandshakeOptions.PublishedServerName(name.Rest)
            : "";
    }

    /// <summary>
    /// Reads the versions. RFC 8446, section 4.2.1: if the extension is present, the version field of the ClientHello
    /// has no meaning.
    /// </summary>
    public static SslProtocols ReadVersions(ReadOnlySpan<byte> content)
    {
        Bytes extension = new(content);
        SslProtocols versions = SslProtocols.None;
        if (extension.TryReadVector(1, out Bytes list) && extension.IsEmpty)
        {
            while (list.TryReadNumber(2, out int version))
            {
                versions |= ToProtocol(version);
            }
        }

        return versions;
    }

    /// <summary>Converts a version. Returns None for GREASE (RFC 8701) and future versions.</summary>
    public static SslProtocols ToProtocol(int version) => version switch
    {
#pragma warning disable SYSLIB0039, CS0618 // The client may offer any version, however old.
        0x0300 => SslProtocols.Ssl3,
        0x0301 => SslProtocols.Tls,
        0x0302 => SslProtocols.Tls11,
#pragma warning restore SYSLIB0039, CS0618
        0x0303 => SslProtocols.Tls12,
        0x0304 => SslProtocols.Tls13,
        _ => SslProtocols.None,
    };

    /// <summary>Represents the bytes that remain to be read.</summary>
    private ref struct Bytes(ReadOnlySpan<byte> bytes)
    {
        public ReadOnlySpan<byte> Rest { get; private set; } = bytes;

        public readonly bool IsEmpty => Rest.IsEmpty;

        public bool TryRead(int length, out Bytes read)
        {
            if (length > Rest.Length)
            {
                read = default;
                return false;
            }

            read = new Bytes(Rest[..length]);
            Rest = Rest[length..];
            return true;
        }

        /// <summary>Reads a big-endian number of one to three bytes.</summary>
        public bool TryReadNumber(int width, out int number)
        {
            number = 0;
            if (!TryRead(width, out Bytes read))
            {
                return false;
            }

            foreach (byte digit in read.Rest)
            {
                number = (number << 8) | digit;
            }

            return true;
        }

        /// <summary>
        /// Reads a vector that is preceded by its length, a number of the specified width (RFC 8446, section 3.4).
        /// </summary>
        public bool TryReadVector(int width, out Bytes vector)
        {
            vector = default;
            return TryReadNumber(width, out int length) && TryRead(length, out vector);
        }
    }
}
