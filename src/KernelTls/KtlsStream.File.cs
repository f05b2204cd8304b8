using System.Buffers;
using KernelTls.IO;
using Microsoft.Win32.SafeHandles;

namespace KernelTls;

// Sending files. If the base class performed the handshake, files are read into a buffer and written, and this file
// tracks the state that SendGate tracks otherwise.
public partial class KtlsStream
{
    // Idle → Sending → Idle, or Broken after a part of a file was sent: nothing may follow it.
    private enum FileState
    {
        Idle,
        Sending,
        Broken,
    }

    private volatile FileState _fileState;

    /// <summary>
    /// Sends <paramref name="count"/> bytes of a file, beginning at <paramref name="offset"/>, in order with the writes
    /// before and after it.
    /// </summary>
    /// <remarks>
    /// <para>
    /// If the kernel encrypts, sendfile(2) sends the file, and its bytes never enter the process. Otherwise they are
    /// read and written. The position of the file handle is neither used nor changed.
    /// </para>
    /// <para>
    /// The call counts as a write: no other write may be pending. Reading from the file system may block the calling
    /// thread; a full send buffer does not. Keep the file open and unchanged until the call completes. If bytes change
    /// before that, the old or the new ones are sent, and with <see cref="KtlsOptions.ZeroCopySendFile"/> the change
    /// breaks the connection.
    /// </para>
    /// <para>
    /// If the call is canceled or fails before its first byte, the stream is unchanged. Once a part may have been sent,
    /// nothing can follow it: writes and <see cref="ShutdownAsync"/> throw, and closing sends no close_notify, so that
    /// the peer detects a truncation.
    /// </para>
    /// </remarks>
    /// <param name="file">
    /// A file opened for reading, with or without <see cref="FileOptions.Asynchronous"/>. The caller keeps ownership.
    /// </param>
    /// <param name="offset">The offset of the first byte from the start of the file.</param>
    /// <param name="count">The number of bytes to send. Zero sends nothing.</param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    /// <returns>A task that represents the operation.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="file"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="file"/> is an invalid handle.</exception>
    /// <exception cref="ArgumentOutOfRangeException">
    /// <paramref name="offset"/> or <paramref name="count"/> is negative, or their sum exceeds the largest file offset.
    /// </exception>
    /// <exception cref="NotSupportedException">
    /// <paramref name="file"/> is not seekable (for example, a pipe or a socket), or another write is pending. Nothing
    /// was sent.
    /// </exception>
    /// <exception cref="EndOfStreamException">
    /// The file contains fewer bytes than <paramref name="count"/>. The message contains the number of bytes sent. The
    /// stream cannot be written to any more, even if none were sent.
    /// </exception>
    /// <exception cref="IOException">Reading the file failed, or the transport failed.</exception>
    /// <exception cref="InvalidOperationException">
    /// No handshake has succeeded, or close_notify was already sent.
    /// </exception>
    /// <exception cref="ObjectDisposedException">This stream or <paramref name="file"/> is closed.</exception>
    public ValueTask SendFileAsync(SafeFileHandle file, long offset, long count, CancellationToken cancellationToken = default)
    {
        FileSection section = new(file, offset, count);
        if (SessionOrNull is { } session)
        {
            return session.Sender.SendFileAsync(section, cancellationToken);
        }

        return CopyAsync(section, cancellationToken);
    }

    private async ValueTask CopyAsync(FileSection section, CancellationToken cancellationToken)
    {
        ThrowIfFileBlocksWrites(Interlocked.CompareExchange(ref _fileState, FileState.Sending, FileState.Idle));
        byte[] buffer = ArrayPool<byte>.Shared.Rent((int)Math.Min(section.Remaining, FileSender.BufferSize));
        try
        {
            cancellationToken.ThrowIfCancellationRequested();

            // Sends nothing: makes the base class check that the stream is writable before the file is read.
            await base.WriteAsync(ReadOnlyMemory<byte>.Empty, CancellationToken.None).ConfigureAwait(false);
            while (section.Remaining > 0)
            {
                ReadOnlyMemory<byte> part = await section.ReadAsync(buffer, cancellationToken).ConfigureAwait(false);
                section.HasStarted = true;
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
            _fileState = section.HasStarted ? FileState.Broken : FileState.Idle;
            throw;
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }

    private void ThrowIfFileBlocksWrites() => ThrowIfFileBlocksWrites(_fileState);

    private static void ThrowIfFileBlocksWrites(FileState state)
    {
        if (state != FileState.Idle)
        {
            throw state == FileState.Sending ? TlsErrors.WritePending() : TlsErrors.Broken();
        }
    }
}
