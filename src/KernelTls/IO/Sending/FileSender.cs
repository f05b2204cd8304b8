using System.Buffers;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Sends a section of a file: by sendfile(2) if the kernel encrypts, otherwise through a buffer. The caller must have the turn of the
/// gate.
/// </summary>
/// <param name="connection">The connection.</param>
/// <param name="socket">The connection's socket.</param>
/// <param name="kernel">Whether the kernel encrypts.</param>
/// <param name="openSsl">Waits for room.</param>
/// <param name="keys">The key that sends.</param>
/// <param name="sendBuffer">Sends what was read, in the turn of the caller.</param>
internal sealed class FileSender(
    TlsConnection connection,
    Socket socket,
    bool kernel,
    OpenSslWriter openSsl,
    SendKeys keys,
    Func<ReadOnlySequence<byte>, CancellationToken, ValueTask> sendBuffer)
{
    internal const int BufferSize = 128 * 1024;

    /// <summary>Number of bytes between two checks of the token and the disposal. A larger step saves nothing that can be measured.</summary>
    private const int LargeStep = 1 << 20;

    /// <summary>
    /// The size of the pieces that sendfile moves: sixteen pages. It sends all but the last with MSG_MORE, which fills segments.
    /// If a piece takes most of the send buffer, each then waits for the peer's delayed acknowledgement (docs/tuning.md).
    /// </summary>
    private const int SmallStep = 64 * 1024;

    private const int RecordOnTheWire = 5 + 16 * 1024 + 256;

    private const int ProtocolTcp = 6;      // IPPROTO_TCP
    private const int MaxSegmentOption = 2; // TCP_MAXSEG

    /// <summary>Sends all of <paramref name="section"/>, which records when a part of it may have been sent.</summary>
    public async ValueTask SendAsync(FileSection section, CancellationToken cancellationToken)
    {
        if (!kernel)
        {
            await CopyAsync(section, cancellationToken).ConfigureAwait(false);
            return;
        }

        int step = section.Remaining > SmallStep && HasLargeSegments() ? SmallStep : LargeStep;
        int refusals = 0;
        while (section.Remaining > 0)
        {
            cancellationToken.ThrowIfCancellationRequested();

            // Steps end on pages. sendfile would move a step that ends within a page in two pieces.
            int reserved = (int)Math.Min(section.Remaining, step - (section.Position % step));
            if (!keys.TryReserve(reserved))
            {
                // Nothing may follow a KeyUpdate that cannot be sent, just as nothing may follow a part of a file.
                section.HasStarted = true;
                reserved = await keys.ReserveAsync(reserved, cancellationToken).ConfigureAwait(false);
            }

            NativeResult result = connection.SendFile(section.File, section.Position, reserved, isLast: reserved == section.Remaining);
            keys.Refund(reserved, result.Bytes);
            switch (result.Status)
            {
                case NativeStatus.Ok when result.Bytes > 0:
                    section.Advance(result.Bytes);
                    refusals = 0;
                    break;
                case NativeStatus.Ok:
                    throw section.CreateEndOfStreamException();
                case NativeStatus.WantWrite:
                    refusals = await openSsl.WaitForSendBufferAsync(refusals, cancellationToken).ConfigureAwait(false);
                    break;
                case NativeStatus.Syscall when TlsErrors.IsConnectionError(result.SysErrno):
                    section.HasStarted = true;
                    throw TlsErrors.Write(result);
                default:
                    // The file system does not support sendfile (EINVAL), or the file cannot be read. Reading it reports the reason.
                    await CopyAsync(section, cancellationToken).ConfigureAwait(false);
                    return;
            }
        }
    }

    private async ValueTask CopyAsync(FileSection section, CancellationToken cancellationToken)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent((int)Math.Min(section.Remaining, BufferSize));
        try
        {
            while (section.Remaining > 0)
            {
                ReadOnlyMemory<byte> part = await section.ReadAsync(buffer, cancellationToken).ConfigureAwait(false);
                section.HasStarted = true;
                await sendBuffer(new ReadOnlySequence<byte>(part), cancellationToken).ConfigureAwait(false);
                section.Advance(part.Length);
            }
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }

    private bool HasLargeSegments()
    {
        int segment = 0;
        _ = socket.GetRawSocketOption(ProtocolTcp, MaxSegmentOption, MemoryMarshal.AsBytes(new Span<int>(ref segment)));
        return segment > RecordOnTheWire;
    }
}
