using System.Buffers;
using System.Buffers.Binary;
using System.Net.Sockets;
using KernelTls.IO;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Looks at the record with the ClientHello and leaves it in the socket, so that whoever is then to shake hands still can.
/// </summary>
internal static class ClientHelloPeek
{
    // RFC 8446, sections 4 and 5.1.
    private const byte HandshakeRecord = 22;
    private const byte ClientHello = 1;
    private const int HeaderLength = 5;
    private const int MaxFragment = 1 << 14;

    /// <summary>
    /// The record, with its header. Empty where the client sends something else, or no more: the handshake will say what is
    /// wrong with it.
    /// </summary>
    /// <exception cref="IOException">The connection failed.</exception>
    public static async Task<byte[]> ReadAsync(Socket socket, CancellationToken cancellationToken)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(HeaderLength + MaxFragment);
        try
        {
            int seen = 0;
            while (true)
            {
                int there = await socket.ReceiveAsync(buffer, SocketFlags.Peek, cancellationToken).ConfigureAwait(false);
                int wanted = LengthOf(buffer.AsSpan(0, there));

                // Ready with no more than before: there is an end behind it, or the receive buffer is too small.
                if (wanted <= there || there == seen)
                {
                    if (seen > 0)
                    {
                        SetLowWater(socket, 1);
                    }

                    return wanted <= there ? buffer[..wanted] : [];
                }

                seen = there;
                SetLowWater(socket, wanted);
                await Readiness.WaitToReadAsync(socket.SafeHandle, cancellationToken).ConfigureAwait(false);
            }
        }
        catch (SocketException e)
        {
            throw new IOException("The connection failed before the ClientHello was there.", e);
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }

    /// <summary>How many bytes there have to be: more than these while the record is not complete; 0: no ClientHello.</summary>
    private static int LengthOf(ReadOnlySpan<byte> bytes)
    {
        if (bytes.Length <= HeaderLength)
        {
            return bytes.IsEmpty || bytes[0] == HandshakeRecord ? HeaderLength + 1 : 0;
        }

        int length = BinaryPrimitives.ReadUInt16BigEndian(bytes[3..]);
        return bytes[0] == HandshakeRecord && bytes[1] == 3 && bytes[HeaderLength] == ClientHello && length <= MaxFragment
            ? HeaderLength + length
            : 0;
    }

    /// <summary>SO_RCVLOWAT: below it the socket is not ready to be read (socket(7)).</summary>
    private static void SetLowWater(Socket socket, int bytes) =>
        socket.SetSocketOption(SocketOptionLevel.Socket, SocketOptionName.ReceiveLowWater, bytes);
}
