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
            await CopyAsync(data, cancellationToken).ConfigureAwait(false);
            return;
        }

        for (ReadOnlyMemory<byte> left = data.First; !left.IsEmpty;)
        {
            ReadOnlyMemory<byte> part = left[..(int)await keys.ReserveAsync(left.Length, cancellationToken).ConfigureAwait(false)];
            await writer.WriteAsync(part, cancellationToken).ConfigureAwait(false);
            left = left[part.Length..];
        }
    }

    /// <summary>Copies the segments into one buffer, so that they fill OpenSSL's records.</summary>
    private async ValueTask CopyAsync(ReadOnlySequence<byte> data, CancellationToken cancellationToken)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(RecordBudget.RecordSize);
        try
        {
            while (!data.IsEmpty)
            {
                long wanted = Math.Min(data.Length, RecordBudget.RecordSize);
                int length = (int)await keys.ReserveAsync(wanted, cancellationToken).ConfigureAwait(false);
                data.Slice(0, length).CopyTo(buffer);
                await writer.WriteAsync(buffer.AsMemory(0, length), cancellationToken).ConfigureAwait(false);
                data = data.Slice(length);
            }
        }
        finally
        {
            // After a failure OpenSSL is not called again, so it no longer uses the buffer.
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }
}
