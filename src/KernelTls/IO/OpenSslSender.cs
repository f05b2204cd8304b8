using System.Buffers;

namespace KernelTls.IO;

/// <summary>Sends data through OpenSSL, in parts that the key may send. The caller must have the turn of the gate.</summary>
internal sealed class OpenSslSender(OpenSslWriter writer, SendKeys keys)
{
    /// <summary>Sends all of <paramref name="data"/>.</summary>
    public async ValueTask SendAsync(ReadOnlySequence<byte> data, CancellationToken cancellationToken)
    {
        if (!data.IsSingleSegment)
        {
            await SendCoalescedAsync(data, cancellationToken).ConfigureAwait(false);
            return;
        }

        for (ReadOnlyMemory<byte> left = data.First; !left.IsEmpty;)
        {
            ReadOnlyMemory<byte> part = left[..(int)await keys.ReserveAsync(left.Length, cancellationToken).ConfigureAwait(false)];
            await writer.WriteAsync(part, cancellationToken).ConfigureAwait(false);
            left = left[part.Length..];
        }
    }

    private async ValueTask SendCoalescedAsync(ReadOnlySequence<byte> data, CancellationToken cancellationToken)
    {
        SegmentCoalescer segments = new(data);
        try
        {
            while (segments.NextLength is > 0 and int wanted)
            {
                int length = (int)await keys.ReserveAsync(wanted, cancellationToken).ConfigureAwait(false);
                await writer.WriteAsync(segments.Next(length), cancellationToken).ConfigureAwait(false);
            }
        }
        finally
        {
            // After a failure OpenSSL is not called again, so it no longer uses the buffer.
            segments.Dispose();
        }
    }
}
