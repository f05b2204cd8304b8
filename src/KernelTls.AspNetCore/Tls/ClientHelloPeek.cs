using System.Buffers;
using System.Buffers.Binary;
using System.Net.Sockets;
using KernelTls.IO;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Peeks at the record with the ClientHello and leaves it in the socket, so that either engine can perform the
/// handshake.
/// </summary>
internal static class ClientHelloPeek
{
    // RFC 8446, sections 4 and 5.1.
    private const byte HandshakeRecord = 22;
    private const byte ClientHello = 1;
    private const int HeaderLength = 5;
    private const int MaxFragment = 1 << 14;

    /// <summary>
    /// Returns the record with its header, or an empty array if the client sends something else or sends no more. The
    /// handshake then reports what is wrong.
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

                // Ready without more bytes than before: the peer has closed its half, or the receive buffer is too
                // small.
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
                await SocketReadiness.WaitToReadAsync(socket.SafeHandle, cancellationToken).ConfigureAwait(false);
            }
        }
        catch (SocketException e)
        {
            throw new IOException("The connection failed before the ClientHello was received.", e);
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }

    /// <summary>
    /// Returns the number of bytes needed: more than given while the record is incomplete, or 0 if it is not a
    /// ClientHello.
    /// </summary>
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

    /// <summary>Sets SO_RCVLOWAT, below which the socket is not readable (socket(7)).</summary>
    private static void SetLowWater(Socket socket, int bytes) =>
        socket.SetSocketOption(SocketOptionLevel.Socket, SocketOptionName.ReceiveLowWater, bytes);
}
