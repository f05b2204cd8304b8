using System.Buffers;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using KernelTls.Interop;

namespace KernelTls.IO;

// A file, sent in one turn at the gate like any other data: by sendfile(2) where the kernel encrypts, else by way of a buffer.
internal sealed partial class TlsSender
{
    internal const int FileBufferSize = 128 * 1024;

    /// <summary>A token or a disposal is seen between steps; more per step saves nothing that can be measured.</summary>
    private const int LargeStep = 1 << 20;

    /// <summary>
    /// What sendfile moves in one go, sixteen pages. All but the last of these go with MSG_MORE, which fills segments up; where
    /// one takes most of the send buffer, each then waits for the peer's delayed acknowledgement (docs/tuning.md).
    /// </summary>
    private const int SmallStep = 64 * 1024;

    private const int RecordOnTheWire = 5 + 16 * 1024 + 256;

    private const int ProtocolTcp = 6;      // IPPROTO_TCP
    private const int MaxSegmentOption = 2; // TCP_MAXSEG

    /// <summary>Sends all of <paramref name="section"/>, or breaks the sending half once a part of it may be out.</summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    public async ValueTask SendFileAsync(FileSection section, CancellationToken cancellationToken)
    {
        Enter();
        try
        {
            await _gate.WaitAsync(cancellationToken).ConfigureAwait(false);
            bool intact = true;
            try
            {
                ThrowIfNotOpen();
                await SendSectionAsync(section, cancellationToken).ConfigureAwait(false);
            }
            catch
            {
                intact = !section.Begun;
                throw;
            }
            finally
            {
                Leave(intact);
            }
        }
        catch (Exception e) when (Translate(e) is var translated && translated != e)
        {
            throw translated;
        }
        finally
        {
            ExitWrite();
        }
    }

    private async ValueTask SendSectionAsync(FileSection section, CancellationToken cancellationToken)
    {
        int step = _kernel && section.Left > SmallStep && HasLargeSegments() ? SmallStep : LargeStep;
        while (section.Left > 0)
        {
            cancellationToken.ThrowIfCancellationRequested();
            ThrowIfAbandoned();
            if (!_kernel)
            {
                await CopySectionAsync(section, cancellationToken).ConfigureAwait(false);
                return;
            }

            // Steps end on pages: one that is half in the next page would be moved in two goes.
            long most = Math.Min(section.Left, step - (section.Position % step));
            long allowed = AnswerGoesFirst ? 0 : _budget.Allow(most);
            if (allowed == 0)
            {
                // A KeyUpdate that does not get out leaves as little behind it as a part of a file.
                section.Begun = true;
                allowed = await AllowLaterAsync(most, cancellationToken).ConfigureAwait(false);
            }

            NativeResult result = _connection.SendFile(section.File, section.Position, (int)allowed);
            switch (result.Status)
            {
                case NativeStatus.Ok when result.Bytes > 0:
                    _budget.Take(result.Bytes);
                    section.Advance(result.Bytes);
                    break;
                case NativeStatus.Ok:
                    throw section.EndedEarly();
                case NativeStatus.WantWrite:
                    await WaitWritableAsync(cancellationToken).ConfigureAwait(false);
                    break;
                case NativeStatus.Syscall when TlsErrors.IsOfConnection(result.SysErrno):
                    section.Begun = true;
                    throw TlsErrors.Write(result);
                default:
                    // A file system that cannot do it (EINVAL), or a file that cannot be read: then reading says why.
                    await CopySectionAsync(section, cancellationToken).ConfigureAwait(false);
                    return;
            }
        }
    }

    private async ValueTask CopySectionAsync(FileSection section, CancellationToken cancellationToken)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent((int)Math.Min(section.Left, FileBufferSize));
        try
        {
            while (section.Left > 0)
            {
                ReadOnlyMemory<byte> part = await section.ReadAsync(buffer, cancellationToken).ConfigureAwait(false);
                section.Begun = true;
                await SendPartsAsync(part, cancellationToken).ConfigureAwait(false);
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
        _ = _socket.GetRawSocketOption(ProtocolTcp, MaxSegmentOption, MemoryMarshal.AsBytes(new Span<int>(ref segment)));
        return segment > RecordOnTheWire;
    }
}
