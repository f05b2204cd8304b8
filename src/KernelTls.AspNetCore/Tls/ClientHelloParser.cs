using System.Net.Security;
using System.Security.Authentication;
using System.Text;
using KernelTls.Handshake;

namespace KernelTls.AspNetCore.Tls;

/// <summary>What a ClientHello (RFC 8446, section 4.1.2) says of the server's name and of the versions, as OpenSSL would read it.</summary>
internal static class ClientHelloParser
{
    private const int RecordHeaderLength = 5;
    private const int RandomLength = 32;
    private const int MaxName = 255;
    private const int ServerNameExtension = 0;
    private const int SupportedVersionsExtension = 43;

    /// <summary>False: the record holds no whole, well-formed hello.</summary>
    public static bool TryParse(ReadOnlySpan<byte> record, out SslClientHelloInfo hello)
    {
        hello = default;
        if (record.Length < RecordHeaderLength)
        {
            return false;
        }

        Bytes message = new(record[RecordHeaderLength..]);
        if (!message.TryTakeNumber(1, out _)
            || !message.TryTakeVector(3, out Bytes body)
            || !body.TryTakeNumber(2, out int version)
            || !body.TryTake(RandomLength, out _)
            || !body.TryTakeVector(1, out _)
            || !body.TryTakeVector(2, out _)
            || !body.TryTakeVector(1, out _))
        {
            return false;
        }

        string name = "";
        SslProtocols versions = ToProtocol(version);
        if (body.IsEmpty)
        {
            hello = new SslClientHelloInfo(name, versions);
            return true;
        }

        if (!body.TryTakeVector(2, out Bytes extensions) || !body.IsEmpty)
        {
            return false;
        }

        while (!extensions.IsEmpty)
        {
            if (!extensions.TryTakeNumber(2, out int type) || !extensions.TryTakeVector(2, out Bytes content))
            {
                return false;
            }

            if (type == ServerNameExtension)
            {
                name = ReadServerName(content);
            }
            else if (type == SupportedVersionsExtension)
            {
                versions = ReadVersions(content);
            }
        }

        hello = new SslClientHelloInfo(HandshakeOptions.PublishedServerName(name), versions);
        return true;
    }

    /// <summary>RFC 6066, section 3: a list, in which only one entry makes sense, of a type and a name.</summary>
    private static string ReadServerName(Bytes extension)
    {
        bool isHostName = extension.TryTakeVector(2, out Bytes list)
            && extension.IsEmpty
            && list.TryTakeNumber(1, out int type)
            && type == 0;
        return isHostName
            && list.TryTakeVector(2, out Bytes name)
            && list.IsEmpty
            && name.Rest.Length <= MaxName
            && !name.Rest.ContainsAnyInRange((byte)0, (byte)' ')
            && !name.Rest.Contains((byte)0x7F)
            ? Encoding.UTF8.GetString(name.Rest)
            : "";
    }

    /// <summary>RFC 8446, section 4.2.1: with the extension, the version of the hello itself means nothing.</summary>
    private static SslProtocols ReadVersions(Bytes extension)
    {
        SslProtocols versions = SslProtocols.None;
        if (extension.TryTakeVector(1, out Bytes list) && extension.IsEmpty)
        {
            while (list.TryTakeNumber(2, out int version))
            {
                versions |= ToProtocol(version);
            }
        }

        return versions;
    }

    /// <summary>None for GREASE (RFC 8701) and what is yet to come.</summary>
    private static SslProtocols ToProtocol(int version) => version switch
    {
#pragma warning disable SYSLIB0039, CS0618 // What the client offers, be it ever so old.
        0x0300 => SslProtocols.Ssl3,
        0x0301 => SslProtocols.Tls,
        0x0302 => SslProtocols.Tls11,
#pragma warning restore SYSLIB0039, CS0618
        0x0303 => SslProtocols.Tls12,
        0x0304 => SslProtocols.Tls13,
        _ => SslProtocols.None,
    };

    /// <summary>What is left to read.</summary>
    private ref struct Bytes(ReadOnlySpan<byte> bytes)
    {
        public ReadOnlySpan<byte> Rest { get; private set; } = bytes;

        public readonly bool IsEmpty => Rest.IsEmpty;

        public bool TryTake(int length, out Bytes taken)
        {
            if (length > Rest.Length)
            {
                taken = default;
                return false;
            }

            taken = new Bytes(Rest[..length]);
            Rest = Rest[length..];
            return true;
        }

        /// <summary>Of one to three bytes, the highest first.</summary>
        public bool TryTakeNumber(int width, out int number)
        {
            number = 0;
            if (!TryTake(width, out Bytes taken))
            {
                return false;
            }

            foreach (byte digit in taken.Rest)
            {
                number = (number << 8) | digit;
            }

            return true;
        }

        /// <summary>Behind its length, a number of that width (RFC 8446, section 3.4).</summary>
        public bool TryTakeVector(int width, out Bytes vector)
        {
            vector = default;
            return TryTakeNumber(width, out int length) && TryTake(length, out vector);
        }
    }
}
