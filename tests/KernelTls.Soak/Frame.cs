using System.Buffers.Binary;
using System.Security.Cryptography;

namespace KernelTls.Soak;

/// <summary>
/// Represents a message of the servers and clients of bare streams: a length, a hash, and the payload.
/// </summary>
internal static class Frame
{
    public const int HeadSize = sizeof(int) + Payload.HashSize;

    /// <summary>Returns the frame of a payload.</summary>
    public static byte[] Create(ReadOnlySpan<byte> payload)
    {
        byte[] frame = new byte[HeadSize + payload.Length];
        BinaryPrimitives.WriteInt32BigEndian(frame, payload.Length);
        SHA256.HashData(payload, frame.AsSpan(sizeof(int)));
        payload.CopyTo(frame.AsSpan(HeadSize));
        return frame;
    }

    /// <summary>Reads a frame and verifies its hash.</summary>
    /// <returns>The payload, or <see langword="null"/> at the end of the stream.</returns>
    /// <exception cref="InvalidDataException">The bytes differ from those sent.</exception>
    /// <exception cref="IOException">The stream ended within the frame.</exception>
    public static async Task<byte[]?> ReadAsync(Stream stream, CancellationToken cancellationToken)
    {
        byte[] head = new byte[HeadSize];
        int read = await stream.ReadAtLeastAsync(head, HeadSize, throwOnEndOfStream: false, cancellationToken);
        if (read == 0)
        {
            return null;
        }

        if (read < HeadSize)
        {
            throw new EndOfStreamException($"The stream ended {read} bytes into the head of a frame.");
        }

        int length = BinaryPrimitives.ReadInt32BigEndian(head);
        if (length is < 0 or > Payload.MaxSize)
        {
            throw new InvalidDataException($"A frame says that it has {length} bytes.");
        }

        byte[] payload = new byte[length];
        await stream.ReadExactlyAsync(payload, cancellationToken);
        Payload.Verify(payload, Convert.ToHexString(head.AsSpan(sizeof(int))), "a frame");
        return payload;
    }
}
