using System.Text;

namespace KernelTls.Demo.Server;

/// <summary>Writes the head of a response.</summary>
internal static class ResponseHead
{
    public static byte[] Create(int status, long contentLength, string contentType, bool keepAlive)
    {
        StringBuilder head = new();
        head.Append($"HTTP/1.1 {status} {PhraseOf(status)}\r\n");
        head.Append($"Date: {DateTimeOffset.UtcNow:R}\r\n");
        head.Append($"Content-Type: {contentType}\r\n");
        head.Append($"Content-Length: {contentLength}\r\n");
        if (status == 405)
        {
            head.Append("Allow: GET, HEAD\r\n");
        }

        if (!keepAlive)
        {
            head.Append("Connection: close\r\n");
        }

        head.Append("\r\n");
        return Encoding.ASCII.GetBytes(head.ToString());
    }

    public static string PhraseOf(int status) => status switch
    {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        505 => "HTTP Version Not Supported",
        _ => throw new ArgumentOutOfRangeException(nameof(status), status, "Expected a status that this server sends."),
    };
}
