using System.Buffers.Binary;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using KernelTls.Interop;
using KernelTls.IO;

namespace KernelTls.Handshake;

/// <summary>Waits until a client's first record has arrived, and leaves it in the socket.</summary>
/// <remarks>
/// A server creates an SSL and rents buffers only after that. A client that sends nothing, or a part of a record, costs no more than
/// the connection itself. The wait for the rest of a record uses SO_RCVLOWAT, because .NET's Socket cannot wait for more bytes
/// than have arrived. The wait ends early if the record cannot be complete (end, failure, small receive buffer) or is none of TLS:
/// OpenSSL then reports what is wrong.
/// </remarks>
internal static class FirstRecord
{
    // RFC 8446, section 5.1, and what OpenSSL waits for before it refuses a record that is too long.
    private const int HeaderLength = 5;
    private const int MaxFragment = (1 << 14) + 328;
    private const int MaxLength = HeaderLength + MaxFragment;

    /// <summary>Waits without blocking a thread. Makes the descriptor non-blocking.</summary>
    /// <param name="receiver">The receiver of the connected socket.</param>
    /// <param name="keepsRecord">Whether to return the record.</param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    /// <returns>The record with its header if it is complete and wanted; otherwise an empty array.</returns>
    /// <exception cref="SocketException">The connection failed.</exception>
    /// <exception cref="ObjectDisposedException">The socket was closed.</exception>
    public static async ValueTask<byte[]> WaitAsync(SocketReceiver receiver, bool keepsRecord, CancellationToken cancellationToken)
    {
        await receiver.WaitReadableAsync(cancellationToken).ConfigureAwait(false);
        return await WaitForRestAsync(receiver.Socket, keepsRecord, cancellationToken).ConfigureAwait(false);
    }

    /// <summary>Does the same when the socket is readable already.</summary>
    /// <inheritdoc cref="WaitAsync"/>
    public static ValueTask<byte[]> WaitForRestAsync(Socket socket, bool keepsRecord, CancellationToken cancellationToken)
    {
        Look look = Peek(socket, keepsRecord);
        return look.IsProgress(0) ? WaitForRestAsync(socket, look, keepsRecord, cancellationToken) : new(look.Record);
    }

    /// <summary>Does the same, blocking. The socket's ReceiveTimeout limits the time in which nothing arrives.</summary>
    /// <returns>False when the time is over.</returns>
    /// <exception cref="SocketException">The connection failed.</exception>
    /// <exception cref="ObjectDisposedException">The socket was closed.</exception>
    public static bool Wait(SocketReceiver receiver)
    {
        bool isInTime = receiver.WaitReadable();
        Look look = Peek(receiver.Socket, keepsRecord: false);
        int seen = 0;
        if (look.IsProgress(seen))
        {
            try
            {
                for (; look.IsProgress(seen); look = Peek(receiver.Socket, keepsRecord: false))
                {
                    seen = look.There;
                    SetLowWater(receiver.Socket, look.Wanted);
                    isInTime = receiver.WaitReadable();
                }
            }
            finally
            {
                ResetLowWater(receiver.Socket);
            }
        }

        return isInTime || look.There > seen;
    }

    private static async ValueTask<byte[]> WaitForRestAsync(
        Socket socket, Look look, bool keepsRecord, CancellationToken cancellationToken)
    {
        try
        {
            for (int seen = 0; look.IsProgress(seen); look = Peek(socket, keepsRecord))
            {
                seen = look.There;
                SetLowWater(socket, look.Wanted);
                await SocketReadiness.WaitToReadAsync(socket.SafeHandle, cancellationToken).ConfigureAwait(false);
            }

            return look.Record;
        }
        finally
        {
            ResetLowWater(socket);
        }
    }

    [SkipLocalsInit]
    private static unsafe Look Peek(Socket socket, bool keepsRecord)
    {
        byte* bytes = stackalloc byte[MaxLength];
        int there;
        int errno = KtlsNative.KtlsNative_SocketPeek(socket.SafeHandle, bytes, MaxLength, &there);
        if (errno != 0)
        {
            // The socket reports an error once.
            return errno == Errno.Again ? new Look(0, 0, []) : throw new SocketException((int)TlsErrors.ToSocketError(errno));
        }

        ReadOnlySpan<byte> all = new(bytes, there);
        int wanted = LengthOf(all);
        return new Look(there, wanted, keepsRecord && wanted > 0 && wanted <= there ? all[..wanted].ToArray() : []);
    }

    /// <summary>
    /// Returns the number of bytes needed: more than given while the record is incomplete, or 0 if OpenSSL refuses it by its header.
    /// </summary>
    private static int LengthOf(ReadOnlySpan<byte> bytes)
    {
        if (bytes.Length < HeaderLength)
        {
            return HeaderLength;
        }

        // A ClientHello in the format of SSL 2.0 (RFC 5246, appendix E.2), which OpenSSL also reads.
        const byte Ssl2Bit = 0x80;
        const byte Ssl2ClientHello = 1;
        if ((bytes[0] & Ssl2Bit) != 0 && bytes[2] == Ssl2ClientHello)
        {
            int size = sizeof(ushort) + (BinaryPrimitives.ReadUInt16BigEndian(bytes) & ~(Ssl2Bit << 8));
            return size <= MaxLength ? size : 0;
        }

        int length = BinaryPrimitives.ReadUInt16BigEndian(bytes[3..]);
        return bytes[1] == 3 && length <= MaxFragment ? HeaderLength + length : 0;
    }

    /// <summary>Sets SO_RCVLOWAT, below which the socket is not readable (socket(7)).</summary>
    private static void SetLowWater(Socket socket, int bytes) =>
        socket.SetSocketOption(SocketOptionLevel.Socket, SocketOptionName.ReceiveLowWater, bytes);

    private static void ResetLowWater(Socket socket)
    {
        try
        {
            SetLowWater(socket, 1);
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            // The next call on the socket fails as well.
        }
    }

    /// <summary>What a peek has found: the bytes that are there, and those that are wanted.</summary>
    private readonly record struct Look(int There, int Wanted, byte[] Record)
    {
        /// <summary>
        /// Returns whether a wait is of use: the record is incomplete, and there are more bytes than before. Readiness without more
        /// bytes means that the peer has closed its half, or that the receive buffer is too small.
        /// </summary>
        public bool IsProgress(int seen) => Wanted > There && There > seen;
    }
}
