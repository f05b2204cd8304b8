using System.Buffers;
using KernelTls.IO;
using Microsoft.Win32.SafeHandles;

namespace KernelTls;

// Sending files. Where the base class shook hands they pass through a buffer, and what TlsSender's gate does is done here.
public partial class KtlsStream
{
    // Idle → Sending → Idle, or Broken: a part of a file is out, and nothing may follow it.
    private enum FileState
    {
        Idle,
        Sending,
        Broken,
    }

    private volatile FileState _fileState;

    /// <summary>
    /// Sends <paramref name="count"/> bytes of a file, from <paramref name="offset"/> on, after all that was written before and
    /// before all that is written afterwards. Where the kernel encrypts, sendfile(2) does it and the bytes never enter the
    /// process; elsewhere they are read and written. The file's own position is neither used nor moved.
    /// </summary>
    /// <remarks>
    /// <para>
    /// It is a write: no other may be pending. File system reads may block the calling thread; a full send buffer does not.
    /// Keep the file open and as it is until this completes: bytes that change meanwhile are sent as one or the other, and with
    /// <see cref="KtlsOptions.ZeroCopySendFile"/> they break the connection.
    /// </para>
    /// <para>
    /// Cancelled, or failed, before its first byte it leaves the stream as it was. Once a part may be out nothing can follow:
    /// writes and <see cref="ShutdownAsync"/> throw, and closing sends no close_notify, so that the peer sees a truncation.
    /// </para>
    /// </remarks>
    /// <param name="file">A file opened for reading; not taken over. With or without <see cref="FileOptions.Asynchronous"/>.</param>
    /// <param name="offset">The first byte, counted from the start of the file.</param>
    /// <param name="count">How many bytes; 0 sends nothing.</param>
    /// <param name="cancellationToken">Ends the sending.</param>
    /// <exception cref="ArgumentNullException"><paramref name="file"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="file"/> is an invalid handle.</exception>
    /// <exception cref="ArgumentOutOfRangeException">
    /// <paramref name="offset"/> or <paramref name="count"/> is negative, or their sum is no file offset.
    /// </exception>
    /// <exception cref="NotSupportedException">
    /// <paramref name="file"/> cannot seek (a pipe, a socket), or another write is pending. Nothing was sent.
    /// </exception>
    /// <exception cref="EndOfStreamException">
    /// The file has fewer bytes; the message says how many were sent. The stream cannot be written to any more, even where none were.
    /// </exception>
    /// <exception cref="IOException">Reading the file failed, or the transport did.</exception>
    /// <exception cref="InvalidOperationException">There was no successful handshake, or close_notify was sent before.</exception>
    /// <exception cref="ObjectDisposedException">This stream, or <paramref name="file"/>, is closed.</exception>
    public ValueTask SendFileAsync(SafeFileHandle file, long offset, long count, CancellationToken cancellationToken = default)
    {
        FileSection section = new(file, offset, count);
        if (Alive is { } session)
        {
            return session.Sender.SendFileAsync(section, cancellationToken);
        }

        ThrowIfHandshakeFailed();
        return CopyAsync(section, cancellationToken);
    }

    private async ValueTask CopyAsync(FileSection section, CancellationToken cancellationToken)
    {
        ThrowIfFileInTheWay(Interlocked.CompareExchange(ref _fileState, FileState.Sending, FileState.Idle));
        byte[] buffer = ArrayPool<byte>.Shared.Rent((int)Math.Min(section.Left, TlsSender.FileBufferSize));
        try
        {
            cancellationToken.ThrowIfCancellationRequested();

            // Sends nothing: the base class says whether it can be written to before the file is looked at.
            await base.WriteAsync(ReadOnlyMemory<byte>.Empty, CancellationToken.None).ConfigureAwait(false);
            while (section.Left > 0)
            {
                ReadOnlyMemory<byte> part = await section.ReadAsync(buffer, cancellationToken).ConfigureAwait(false);
                section.Begun = true;
                await base.WriteAsync(part, cancellationToken).ConfigureAwait(false);
                section.Advance(part.Length);
            }

            _fileState = FileState.Idle;
        }
        catch (NotSupportedException) when (section.Sent == 0)
        {
            // Another write is pending.
            _fileState = FileState.Idle;
            throw;
        }
        catch
        {
            _fileState = section.Begun ? FileState.Broken : FileState.Idle;
            throw;
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }

    private void ThrowIfFileInTheWay() => ThrowIfFileInTheWay(_fileState);

    private static void ThrowIfFileInTheWay(FileState state)
    {
        if (state != FileState.Idle)
        {
            throw state == FileState.Sending ? TlsErrors.WritePending() : TlsErrors.Broken();
        }
    }
}
