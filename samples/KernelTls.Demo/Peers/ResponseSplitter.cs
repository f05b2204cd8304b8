using System.Text;

namespace KernelTls.Demo.Peers;

/// <summary>Splits an HTTP response: keeps the head and passes the body on.</summary>
internal sealed class ResponseSplitter
{
    private const int HeadLimit = 8 * 1024;
    private readonly ReceivedFile _body;
    private readonly List<byte> _head = [];

    public ResponseSplitter(ReceivedFile body) => _body = body;

    /// <summary>Gets the first line of the response, or <see langword="null"/> while the head is incomplete.</summary>
    public string? StatusLine { get; private set; }

    public void Append(ReadOnlySpan<byte> data)
    {
        if (StatusLine is not null)
        {
            _body.Append(data);
            return;
        }

        _head.AddRange(data);
        byte[] head = [.. _head];
        int end = head.AsSpan().IndexOf("\r\n\r\n"u8);
        if (end >= 0)
        {
            StatusLine = Encoding.Latin1.GetString(head, 0, head.AsSpan().IndexOf("\r\n"u8));
            _body.Append(head.AsSpan(end + 4));
        }
        else if (head.Length > HeadLimit)
        {
            throw new DemoFailedException($"no end of the response's head within {HeadLimit} bytes");
        }
    }
}
