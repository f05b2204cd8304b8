using System.Buffers;
using System.IO.Pipelines;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;
using Microsoft.Extensions.Logging;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Implements the HTTP/1 response body of a connection: Kestrel's own, except for files, which are sent by
/// <see cref="KtlsStream.SendFileAsync"/>.
/// </summary>
/// <remarks>
/// <para>
/// A file passes through Kestrel's response writer in parts that look like memory but have only a length
/// (<see cref="FilePlaceholder"/>). Kestrel counts them, keeps the order and times the flushes as usual.
/// <see cref="TlsPipeWriter"/>, at the connection's end of that writer, turns the parts back into files. If a
/// middleware has replaced the writer, which is detected before anything is counted, the file is copied. A response
/// without Content-Length has chunk frames, so its files are sent by Kestrel.
/// </para>
/// <para>One object serves all requests of a connection, which are processed one after the other.</para>
/// </remarks>
internal sealed class ResponseFiles(TlsPipeWriter output, string connectionId, ILogger logger) : IHttpResponseBodyFeature
{
    /// <summary>
    /// The size of a part. Kestrel checks for cancellation between parts. It is also the largest step of the sender.
    /// </summary>
    internal const int PartSize = 1 << 20;

    /// <summary>
    /// The size up to which reading the file is cheaper: the content shares a record with the head of the response.
    /// </summary>
    internal const int SmallFile = 16 * 1024;

    private IFeatureCollection _request = null!;
    private IHttpResponseBodyFeature _body = null!;

    public Stream Stream => _body.Stream;

    public PipeWriter Writer => _body.Writer;

    /// <summary>Wraps the body of a request that has just begun, if its connection has this feature.</summary>
    public static void Attach(IFeatureCollection request)
    {
        IHttpResponseBodyFeature? body = request.Get<IHttpResponseBodyFeature>();
        if (request.Get<ResponseFiles>() is { } files && body is not null && body != files)
        {
            files._request = request;
            files._body = body;
            request.Set<IHttpResponseBodyFeature>(files);
        }
    }

    public void DisableBuffering() => _body.DisableBuffering();

    public Task StartAsync(CancellationToken cancellationToken = default) => _body.StartAsync(cancellationToken);

    public Task CompleteAsync() => _body.CompleteAsync();

    public Task SendFileAsync(string path, long offset, long? count, CancellationToken cancellationToken = default)
    {
        if (!HasLength || Open(path, offset, count, out long length) is not { } file)
        {
            return _body.SendFileAsync(path, offset, count, cancellationToken);
        }

        return SendAsync(file, offset, length, cancellationToken);
    }

    private bool HasLength => _request.Get<IHttpResponseFeature>()?.Headers.ContentLength is not null;

    /// <summary>
    /// Opens the file. Returns null if there is nothing to send, or if the file is invalid, in which case Kestrel's own
    /// method throws the error.
    /// </summary>
    private static SafeFileHandle? Open(string path, long offset, long? count, out long length)
    {
        length = count ?? 0;
        if (count is 0)
        {
            return null;
        }

        SafeFileHandle? file = null;
        try
        {
            file = File.OpenHandle(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite);
            long left = RandomAccess.GetLength(file) - offset;
            length = count ?? left;
            if (offset >= 0 && length > 0 && length <= left)
            {
                return file;
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or ArgumentException or NotSupportedException)
        {
        }

        file?.Dispose();
        return null;
    }

    private async Task SendAsync(SafeFileHandle file, long offset, long length, CancellationToken cancellationToken)
    {
        FilePlaceholder? part = null;
        IHttpMinResponseDataRateFeature? timing = null;
        MinDataRate? rate = null;
        try
        {
            cancellationToken.ThrowIfCancellationRequested();
            if (length <= SmallFile)
            {
                await CopyAsync(file, offset, length, cancellationToken).ConfigureAwait(false);
                return;
            }

            // The callbacks of this call may change the headers. Afterwards they are fixed.
            await _body.StartAsync(cancellationToken).ConfigureAwait(false);
            if (!HasLength)
            {
                await CopyAsync(file, offset, length, cancellationToken).ConfigureAwait(false);
                return;
            }

            timing = _request.Get<IHttpMinResponseDataRateFeature>();
            rate = timing?.MinDataRate;
            TimeSpan due = TimeSpan.Zero;
            while (length > 0)
            {
                cancellationToken.ThrowIfCancellationRequested();
                int most = (int)Math.Min(length, PartSize - (offset % PartSize));
                if (rate is not null)
                {
                    TimeSpan now = TimeSpan.FromMilliseconds(Environment.TickCount64);
                    due = DueTime(rate, most, due, now);
                    timing!.MinDataRate = new MinDataRate(rate.BytesPerSecond, due - now);
                }

                part = new FilePlaceholder(file, offset, most, ownsFile: most == length);
                if (!TryWrite(part))
                {
                    logger.FileIsCopied(connectionId);
                    await CopyAsync(file, offset, length, cancellationToken).ConfigureAwait(false);
                    return;
                }

                // A write also flushes. If this is the end of the body, the write detects that before the client can: a
                // client that has received everything may then disconnect without aborting the request.
                await Writer.WriteAsync(ReadOnlyMemory<byte>.Empty, cancellationToken).ConfigureAwait(false);
                part.ThrowIfUnreadable();
                offset += most;
                length -= most;
            }
        }
        catch (OperationCanceledException)
        {
            // The connection was aborted, possibly because of the file.
            part?.ThrowIfUnreadable();
            throw;
        }
        finally
        {
            if (part is not { IsQueued: true, OwnsFile: true })
            {
                file.Dispose();
            }

            if (rate is not null)
            {
                timing!.MinDataRate = rate;
            }
        }
    }

    /// <summary>
    /// Copies the file as Kestrel does, but from the open handle: the path may refer to another file by now.
    /// </summary>
    private async Task CopyAsync(SafeFileHandle file, long offset, long length, CancellationToken cancellationToken)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(SmallFile);
        try
        {
            while (length > 0)
            {
                int read = RandomAccess.Read(file, buffer.AsSpan(0, (int)Math.Min(length, SmallFile)), offset);
                if (read == 0)
                {
                    // The file was truncated. Kestrel reports that at the end of the response.
                    return;
                }

                await Writer.WriteAsync(buffer.AsMemory(0, read), cancellationToken).ConfigureAwait(false);
                offset += read;
                length -= read;
            }
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }

    /// <summary>
    /// Returns when a part must have been sent. Kestrel limits a flush by the bytes written to its own buffers. Data that passes through its
    /// writer would have only the grace period, so the limits of a file are these, by Kestrel's rule: time that earlier parts did not use
    /// is not lost.
    /// </summary>
    /// <param name="rate">The rate of the request.</param>
    /// <param name="length">The length of the part.</param>
    /// <param name="previous">When the part before it had to be sent, or zero.</param>
    /// <param name="now">The current time, on the same clock.</param>
    internal static TimeSpan DueTime(MinDataRate rate, int length, TimeSpan previous, TimeSpan now)
    {
        double time = length / rate.BytesPerSecond;
        double left = Math.Max(rate.GracePeriod.TotalSeconds, (previous - now).TotalSeconds) + time;
        return now + TimeSpan.FromSeconds(Math.Min(left, int.MaxValue));
    }

    /// <summary>
    /// Writes a part. Returns false if the writer does not lead to the connection, because it was closed or a
    /// middleware replaced the writer.
    /// </summary>
    private bool TryWrite(FilePlaceholder part)
    {
        PipeWriter writer = Writer;
        output.Announce(part);
        try
        {
            if (!part.Matches(writer.GetMemory()))
            {
                return false;
            }

            // Kestrel rejects more than Content-Length, and ignores the data of a response without a body.
            writer.Advance(part.Length);
            return true;
        }
        catch (ArgumentOutOfRangeException e)
        {
            // Concurrent writes: the part was counted but did not reach the connection.
            output.Break(e);
            throw;
        }
        finally
        {
            output.Withdraw();
        }
    }
}
