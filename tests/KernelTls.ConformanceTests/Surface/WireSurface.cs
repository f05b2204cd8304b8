using System.Security.Cryptography.X509Certificates;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Describes the records and messages that a peer has received, as members of a surface.</summary>
/// <remarks>
/// Left out are randoms, session ids, key shares, signatures, tickets, binders and ages: their lengths remain, except those
/// of tickets and signatures, which vary. Everything else is compared as it is, including the order of lists: OpenSSL randomizes none.
/// </remarks>
internal static class WireSurface
{
    private const int Alert = 21;
    private const int Handshake = 22;
    private const int Header = 256;

    private static readonly Dictionary<int, string> s_extensions = new()
    {
        [0] = "server_name",
        [5] = "status_request",
        [10] = "supported_groups",
        [11] = "ec_point_formats",
        [13] = "signature_algorithms",
        [16] = "alpn",
        [18] = "signed_certificate_timestamp",
        [21] = "padding",
        [22] = "encrypt_then_mac",
        [23] = "extended_master_secret",
        [35] = "session_ticket",
        [41] = "pre_shared_key",
        [42] = "early_data",
        [43] = "supported_versions",
        [44] = "cookie",
        [45] = "psk_key_exchange_modes",
        [47] = "certificate_authorities",
        [49] = "post_handshake_auth",
        [50] = "signature_algorithms_cert",
        [51] = "key_share",
        [65281] = "renegotiation_info",
    };

    private static readonly Dictionary<int, string> s_messages = new()
    {
        [0] = "HelloRequest",
        [1] = "ClientHello",
        [2] = "ServerHello",
        [4] = "NewSessionTicket",
        [8] = "EncryptedExtensions",
        [11] = "Certificate",
        [12] = "ServerKeyExchange",
        [13] = "CertificateRequest",
        [14] = "ServerHelloDone",
        [15] = "CertificateVerify",
        [16] = "ClientKeyExchange",
        [20] = "Finished",
        [22] = "CertificateStatus",
        [24] = "KeyUpdate",
    };

    /// <summary>Adds what a peer has received in a connection of this version.</summary>
    public static void Describe(Surface surface, string prefix, IReadOnlyList<(int Type, byte[] Content)> received, bool isTls13)
    {
        List<string> order = [];
        List<string> records = [];
        int tickets = 0;
        bool isDone = false;
        foreach ((int type, byte[] content) in received)
        {
            switch (type)
            {
                case Header when !isDone:
                    string record = $"{content[0]} {content[1]:X2}{content[2]:X2}";
                    if (records.LastOrDefault() != record)
                    {
                        records.Add(record);
                    }

                    break;
                case Handshake when content[0] == 4:
                    tickets++;
                    DescribeTicket(surface, $"{prefix}NewSessionTicket", content.AsSpan(4), isTls13);
                    break;
                case Handshake:
                    string name = s_messages.GetValueOrDefault(content[0], $"message {content[0]}");
                    order.Add(name);
                    DescribeMessage(surface, $"{prefix}{name}", content[0], content.AsSpan(4), isTls13);
                    isDone |= content[0] == 20;
                    break;
                case Alert:
                    surface.Add($"{prefix}alerts", $"{(content[0] == 1 ? "warning " : "")}{AlertName.Of(content[1])}");
                    break;
            }
        }

        surface.Add($"{prefix}messages", string.Join(", ", order));
        surface.Add($"{prefix}records of the handshake", string.Join(", ", records));
        surface.Add($"{prefix}NewSessionTickets", $"{tickets}");
    }

    private static void DescribeMessage(Surface surface, string name, int type, ReadOnlySpan<byte> body, bool isTls13)
    {
        WireReader reader = new(body);
        switch (type)
        {
            case 1:
                DescribeHello(surface, name, ref reader);
                surface.Add($"{name}.cipher_suites", new WireReader(reader.Vector(2)).Numbers());
                surface.Add($"{name}.compression_methods", Convert.ToHexString(reader.Vector(1)));
                DescribeExtensions(surface, name, ref reader);
                break;
            case 2:
                DescribeHello(surface, name, ref reader);
                surface.Add($"{name}.cipher_suite", $"{reader.Number():X4}");
                surface.Add($"{name}.compression_method", $"{reader.Byte()}");
                DescribeExtensions(surface, name, ref reader);
                break;
            case 8:
                DescribeExtensions(surface, name, ref reader);
                break;
            case 11:
                DescribeCertificates(surface, name, ref reader, isTls13);
                break;
            case 12:
                surface.Add($"{name}.curve", $"{reader.Byte()} {reader.Number():X4} of {reader.Vector(1).Length}");
                surface.Add($"{name}.algorithm", $"{reader.Number():X4}");
                break;
            case 13 when isTls13:
                surface.Add($"{name}.context", $"{reader.Vector(1).Length} bytes");
                DescribeExtensions(surface, name, ref reader);
                break;
            case 13:
                surface.Add($"{name}.certificate_types", Convert.ToHexString(reader.Vector(1)));
                surface.Add($"{name}.signature_algorithms", new WireReader(reader.Vector(2)).Numbers());
                surface.Add($"{name}.certificate_authorities", Authorities(reader.Vector(2)));
                break;
            case 15:
                surface.Add($"{name}.algorithm", $"{reader.Number():X4}");
                break;
            case 16:
                surface.Add(name, $"{body.Length} bytes");
                break;
            default:
                surface.Add(name, type == 20 ? $"{body.Length} bytes" : Convert.ToHexString(body));
                break;
        }
    }

    private static void DescribeHello(Surface surface, string name, ref WireReader reader)
    {
        surface.Add($"{name}.legacy_version", $"{reader.Number():X4}");
        reader.Bytes(32);
        surface.Add($"{name}.session_id", $"{reader.Vector(1).Length} bytes");
    }

    private static void DescribeExtensions(Surface surface, string name, ref WireReader reader)
    {
        WireReader extensions = reader.IsEmpty ? reader : new WireReader(reader.Vector(2));
        List<string> order = [];
        while (!extensions.IsEmpty)
        {
            int type = extensions.Number();
            string extension = s_extensions.GetValueOrDefault(type, $"extension {type}");
            order.Add(extension);
            surface.Add($"{name}.{extension}", Extension(type, name, extensions.Vector(2)));
        }

        surface.Add($"{name}.extensions", string.Join(", ", order));
    }

    private static string Extension(int type, string message, ReadOnlySpan<byte> content)
    {
        WireReader reader = new(content);
        switch (type)
        {
            case 0 when content.Length > 5:
                return SurfaceHosts.Unify(Encoding.Latin1.GetString(content[5..]));
            case 10 or 13 or 50:
                return new WireReader(reader.Vector(2)).Numbers();
            case 21:
                return "of any length";
            case 35:
                return content.IsEmpty ? SurfaceText.Empty : "a ticket";
            case 41 when content.Length == 2:
                return $"selects {reader.Number()}";
            case 41:
                WireReader identities = new(reader.Vector(2));
                int count = 0;
                for (; !identities.IsEmpty; count++)
                {
                    identities.Vector(2);
                    identities.Bytes(4);
                }

                return $"{count} tickets, binders of {reader.Vector(2).Length} bytes";
            case 47:
                return Authorities(reader.Vector(2));
            case 51 when content.Length == 2:
                return $"{reader.Number():X4}";
            case 51:
                WireReader shares = new(message.EndsWith("ClientHello", StringComparison.Ordinal) ? reader.Vector(2) : content);
                List<string> groups = [];
                while (!shares.IsEmpty)
                {
                    groups.Add($"{shares.Number():X4} of {shares.Vector(2).Length}");
                }

                return string.Join(", ", groups);
            default:
                return Convert.ToHexString(content);
        }
    }

    private static void DescribeCertificates(Surface surface, string name, ref WireReader reader, bool isTls13)
    {
        if (isTls13)
        {
            surface.Add($"{name}.context", $"{reader.Vector(1).Length} bytes");
        }

        WireReader list = new(reader.Vector(3));
        List<string> subjects = [];
        while (!list.IsEmpty)
        {
            using X509Certificate2 certificate = X509CertificateLoader.LoadCertificate(list.Vector(3));
            subjects.Add(certificate.Subject);
            if (isTls13)
            {
                DescribeExtensions(surface, $"{name}.entry", ref list);
            }
        }

        surface.Add($"{name}.certificates", string.Join(", ", subjects));
    }

    private static void DescribeTicket(Surface surface, string name, ReadOnlySpan<byte> body, bool isTls13)
    {
        WireReader reader = new(body);
        surface.Add($"{name}.lifetime", Convert.ToHexString(reader.Bytes(4)));
        if (isTls13)
        {
            reader.Bytes(4);
            surface.Add($"{name}.nonce", $"{reader.Vector(1).Length} bytes");
            reader.Vector(2);
            DescribeExtensions(surface, name, ref reader);
        }
    }

    private static string Authorities(ReadOnlySpan<byte> list)
    {
        WireReader reader = new(list);
        List<string> names = [];
        while (!reader.IsEmpty)
        {
            names.Add(new X500DistinguishedName(reader.Vector(2)).Name);
        }

        return $"[{string.Join(", ", names)}]";
    }
}
