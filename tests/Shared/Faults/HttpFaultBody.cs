using System.Buffers.Binary;
using System.Text;

namespace KernelTls.Tests;

/// <summary>
/// Creates an HTTP message whose body is the pattern without end: its head, and its bytes at any position.
/// </summary>
/// <param name="isHttp2">
/// Whether to use HTTP/2 (RFC 9113), in DATA frames of a hundred bytes each, instead of HTTP/1.1 with a Content-Length.
/// </param>
internal sealed class HttpFaultBody(bool isHttp2)
{
    private const int FrameHeader = 9;
    private const int FramePayload = 91;
    private const int Frame = FrameHeader + FramePayload;
    private const int Endless = 10_000_000;

    public static byte[] Http2Preface { get; } = Encoding.ASCII.GetBytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

    /// <summary>Gets the protocol to negotiate by ALPN.</summary>
    public string? Protocol => isHttp2 ? "h2" : null;

    public byte[] ResponseHead => isHttp2
        ? [.. Http2Frame(4, 0, 0, []), .. Http2Frame(1, 4, 1, [0x88])]
        : Encoding.ASCII.GetBytes($"HTTP/1.1 200 OK\r\nContent-Length: {Endless}\r\n\r\n");

    public byte[] RequestHead(string path) => isHttp2
        ? [
            .. Http2Preface, .. Http2Frame(4, 0, 0, []),
            .. Http2Frame(1, 4, 1, [0x83, 0x87, 4, (byte)path.Length, .. Encoding.ASCII.GetBytes(path), 1, 9, .. "localhost"u8])]
        : Encoding.ASCII.GetBytes($"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {Endless}\r\n\r\n");

    /// <summary>Returns whether a client has sent a complete request without a body.</summary>
    public bool IsRequest(byte[] data)
    {
        if (!isHttp2)
        {
            return data.AsSpan().EndsWith("\r\n\r\n"u8);
        }

        const byte headers = 1;
        for (int at = Http2Preface.Length; data.Length >= at + FrameHeader;)
        {
            if (data[at + 3] == headers)
            {
                return true;
            }

            at += FrameHeader + ((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
        }

        return false;
    }

    /// <summary>Returns bytes of the message after its head.</summary>
    public byte[] Content(long position, int count)
    {
        if (!isHttp2)
        {
            return Pattern.Take(count, position);
        }

        byte[] content = new byte[count];
        byte[] header = Http2Frame(0, 0, 1, new byte[FramePayload])[..FrameHeader];
        for (int i = 0; i < count; i++)
        {
            (long frame, long offset) = Math.DivRem(position + i, Frame);
            content[i] = offset < FrameHeader ? header[offset] : Pattern.At((frame * FramePayload) + offset - FrameHeader, 1).Span[0];
        }

        return content;
    }

    /// <summary>
    /// Returns the result as far as it does not depend on timing. On a failed connection either a read meets the fault,
    /// or a write meets its effect on the socket.
    /// </summary>
    public FaultOutcome Outcome(string ending, long received, FaultEnd end, IEnumerable<string> alerts)
    {
        bool failed = ending is not (FaultOutcome.All or FaultOutcome.End or FaultOutcome.Waits);
        long delivered = failed ? Math.Min(received, Payload(FaultScene.Usual)) : received;
        ending = ending.Split(" (")[0];
        return end == FaultEnd.Reset
            ? new FaultOutcome(0, failed ? "an exception" : ending, "", "")
            : new FaultOutcome(delivered, ending, string.Join(", ", alerts.Distinct()), "");
    }

    /// <summary>Returns the length of the body in a number of bytes. HTTP/2 delivers whole frames.</summary>
    public long Payload(long size) => isHttp2 ? size / Frame * FramePayload : size;

    public static byte[] Http2Frame(byte type, byte flags, int stream, byte[] payload)
    {
        byte[] id = new byte[4];
        BinaryPrimitives.WriteInt32BigEndian(id, stream);
        return [.. HandshakeMessages.Vector(payload, 3)[..3], type, flags, .. id, .. payload];
    }
}
