using System.CommandLine.Parsing;
using System.Globalization;
using System.Net;

namespace KernelTls.Tool.Peers;

/// <summary>Represents HOST:PORT as typed by the user.</summary>
/// <param name="Host">The name or address. An IPv6 address has no brackets.</param>
/// <param name="Port">The port, 1 to 65535.</param>
internal sealed record PeerAddress(string Host, int Port)
{
    public override string ToString() => Host.Contains(':', StringComparison.Ordinal) ? $"[{Host}]:{Port}" : $"{Host}:{Port}";

    /// <summary>Parses an argument for System.CommandLine. An invalid value becomes the result's error.</summary>
    public static PeerAddress? Parse(ArgumentResult result)
    {
        string text = result.Tokens[0].Value;
        PeerAddress? address = TryParse(text);
        if (address is null)
        {
            result.AddError($"'{text}' is not HOST:PORT: expected a name or an address, a colon and a port from 1 to 65535, such as example.com:443 or [::1]:8443.");
        }

        return address;
    }

    public static PeerAddress? TryParse(string text)
    {
        int colon = text.LastIndexOf(':');
        if (colon <= 0
            || !int.TryParse(text.AsSpan(colon + 1), NumberStyles.None, CultureInfo.InvariantCulture, out int port)
            || port is < 1 or > IPEndPoint.MaxPort)
        {
            return null;
        }

        string host = text[..colon];
        bool bracketed = host.StartsWith('[') && host.EndsWith(']');
        host = bracketed ? host[1..^1] : host;
        return Uri.CheckHostName(host) switch
        {
            UriHostNameType.IPv6 when bracketed => new PeerAddress(host, port),
            UriHostNameType.Dns or UriHostNameType.IPv4 when !bracketed => new PeerAddress(host, port),
            _ => null,
        };
    }
}
