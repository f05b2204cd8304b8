using System.Buffers;
using System.Text;

namespace KernelTls.Demo.Server;

/// <summary>
/// Parses the head of an HTTP/1.x request (RFC 9112), strictly: what two readers could understand differently is refused.
/// </summary>
internal static class RequestParser
{
    private static readonly SearchValues<char> s_token = SearchValues.Create(
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");

    /// <param name="head">From the request line to the empty line, which is left out.</param>
    /// <exception cref="BadRequestException">The head is malformed or its version is not 1.0 or 1.1.</exception>
    public static RequestHead Parse(ReadOnlySpan<byte> head)
    {
        string[] lines = Encoding.Latin1.GetString(head).Split("\r\n");
        if (lines.Any(line => line.Any(c => (c < ' ' && c != '\t') || c == '\x7F')))
        {
            throw Malformed("a control character");
        }

        (string method, string target, bool isHttp11) = ParseRequestLine(lines[0]);
        bool keepAlive = isHttp11;
        bool hasBody = false;
        int hosts = 0;
        foreach (string line in lines.AsSpan(1))
        {
            (string name, string value) = ParseField(line);
            switch (name.ToUpperInvariant())
            {
                case "HOST":
                    hosts++;
                    break;
                case "CONNECTION":
                    keepAlive &= !value.Split(',', StringSplitOptions.TrimEntries).Contains("close", StringComparer.OrdinalIgnoreCase);
                    break;
                case "TRANSFER-ENCODING":
                    hasBody = true;
                    break;
                case "CONTENT-LENGTH":
                    hasBody |= value != "0";
                    break;
            }
        }

        return hosts == 1 || (hosts == 0 && !isHttp11)
            ? new RequestHead(method, PathOf(target), keepAlive, hasBody)
            : throw Malformed("not exactly one Host");
    }

    private static (string Method, string Target, bool IsHttp11) ParseRequestLine(string line)
    {
        string[] parts = line.Split(' ');
        if (parts.Length != 3 || !IsToken(parts[0]) || parts[1].Length == 0 || !parts[2].StartsWith("HTTP/", StringComparison.Ordinal))
        {
            throw Malformed("the request line");
        }

        return parts[2] switch
        {
            "HTTP/1.1" => (parts[0], parts[1], true),
            "HTTP/1.0" => (parts[0], parts[1], false),
            _ => throw new BadRequestException(505, "this server speaks HTTP/1.1"),
        };
    }

    private static (string Name, string Value) ParseField(string line)
    {
        int colon = line.IndexOf(':', StringComparison.Ordinal);
        return colon > 0 && IsToken(line.AsSpan(0, colon))
            ? (line[..colon], line[(colon + 1)..].Trim(' ', '\t'))
            : throw Malformed("a header field");
    }

    /// <summary>Origin form is a path; absolute form, which every server must take (RFC 9112, section 3.2.2), contains one.</summary>
    private static string PathOf(string target)
    {
        const string Scheme = "https://";
        if (target.StartsWith(Scheme, StringComparison.OrdinalIgnoreCase))
        {
            int slash = target.IndexOf('/', Scheme.Length);
            target = slash < 0 ? "/" : target[slash..];
        }

        int query = target.IndexOf('?', StringComparison.Ordinal);
        return query < 0 ? target : target[..query];
    }

    private static bool IsToken(ReadOnlySpan<char> text) => !text.IsEmpty && !text.ContainsAnyExcept(s_token);

    private static BadRequestException Malformed(string what) => new(400, $"malformed request: {what}");
}
