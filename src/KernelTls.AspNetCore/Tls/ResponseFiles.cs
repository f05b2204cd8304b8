using System.Buffers;
using System.IO.Pipelines;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;
using Microsoft.Extensions.Logging;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// The response body of HTTP/1 on a connection: Kestrel's own, but for files, which go to <see cref="KtlsStream.SendFileAsync"/>.
/// </summary>
/// <remarks>
/// <para>
/// Kestrel stays in charge. The file goes through its response writer in parts that are memory by their length alone
/// (<see cref="FilePlaceholder"/>); Kestrel counts them, keeps the order and times the flushes as ever, and at the connection's
/// end of it, <see cref="TlsPipeWriter"/>, the parts are files again. Where the writer does not lead there, which shows before
/// anything is counted, the file is copied; without a Content-Length, where chunks have frames of their own, it goes Kestrel's way.
/// </para>
/// <para>One object for all requests of a connection, which come one after the other.</para>
/// </remarks>
internal sealed class ResponseFiles(TlsPipeWriter output, string connectionId, ILogger logger) : IHttpResponseBodyFeature
{
    /// <summary>Between two parts Kestrel sees cancellation; it is also what the sender moves in one go.</summary>
    internal const int PartSize = 1 << 20;

    /// <summary>Up to a record it is cheaper to read the file: it shares the record with the head of the response.</summary>
    internal const int SmallFile = 16 * 1024;

    private IFeatureCollection _request = null!;
    private IHttpResponseBodyFeature _body = null!;

    public Stream Stream => _body.Stream;

    public PipeWriter Writer => _body.Writer;

    /// <summary>In front of the body of a request that has just begun, where its connection has this feature.</summary>
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

    /// <summary>Null: nothing is to be sent, or Kestrel's own way will meet what is wrong, and throw it.</summary>
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

            // Callbacks may change the head; afterwards it stays.
            await _body.StartAsync(cancellationToken).ConfigureAwait(false);
            if (!HasLength)
            {
                await CopyAsync(file, offset, length, cancellationToken).ConfigureAwait(false);
                return;
            }

            timing = _request.Get<IHttpMinResponseDataRateFeature>();
            rate = timing?.MinDataRate;
            if (rate is not null)
            {
                timing!.MinDataRate = ForPart(rate);
            }

            while (length > 0)
            {
                cancellationToken.ThrowIfCancellationRequested();
                int most = (int)Math.Min(length, PartSize - (offset % PartSize));
                part = new FilePlaceholder(file, offset, most, ownsFile: most == length);
                if (!TryWrite(part))
                {
                    logger.FileIsCopied(connectionId);
                    await CopyAsync(file, offset, length, cancellationToken).ConfigureAwait(false);
                    return;
                }

                // A write flushes as well. It sees where this is all of the body, before the client can: a client that has
                // everything may go, and aborts nothing by it.
                await Writer.WriteAsync(ReadOnlyMemory<byte>.Empty, cancellationToken).ConfigureAwait(false);
                part.ThrowIfUnreadable();
                offset += most;
                length -= most;
            }
        }
        catch (OperationCanceledException)
        {
            // The connection was aborted, perhaps because of the file.
            part?.ThrowIfUnreadable();
            throw;
        }
        finally
        {
            if (part is not { IsTaken: true, OwnsFile: true })
            {
                file.Dispose();
            }

            if (rate is not null)
            {
                timing!.MinDataRate = rate;
            }
        }
    }

    /// <summary>As Kestrel does, but of the file that is open: its path may lead to another one by now.</summary>
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
                    // It became shorter; Kestrel says so when the response ends.
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
    /// Kestrel takes the time of a flush by what was written to it in buffers of its own; what goes through its writer has the
    /// grace period alone. So that gets the time of a part.
    /// </summary>
    private static MinDataRate ForPart(MinDataRate rate) => new(
        rate.BytesPerSecond, rate.GracePeriod + TimeSpan.FromSeconds(Math.Min(PartSize / rate.BytesPerSecond, int.MaxValue)));

    /// <summary>False: the writer does not lead to the connection, because that has gone or somebody stands between.</summary>
    private bool TryWrite(FilePlaceholder part)
    {
        PipeWriter writer = Writer;
        output.Announce(part);
        try
        {
            if (!part.Is(writer.GetMemory()))
            {
                return false;
            }

            // Kestrel refuses what is more than Content-Length, and takes nothing where a response has no body.
            writer.Advance(part.Length);
            return true;
        }
        catch (ArgumentOutOfRangeException e)
        {
            // Written to by two at once, and counted where it did not get to.
            output.Break(e);
            throw;
        }
        finally
        {
            output.Withdraw();
        }
    }
}
