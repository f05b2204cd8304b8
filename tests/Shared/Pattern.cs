namespace KernelTls.Tests;

/// <summary>
/// Provides an endless stream of bytes that is cheap to create and to check. A lost, duplicated, moved or changed byte
/// is detected at its position.
/// </summary>
/// <remarks>The stream repeats a random block whose length no record or buffer size divides.</remarks>
internal static class Pattern
{
    private const int Period = (1 << 20) + 7;
    private static readonly byte[] s_block = Make();

    /// <summary>
    /// Returns at least one and up to <paramref name="count"/> bytes of the stream from <paramref name="position"/>.
    /// </summary>
    public static ReadOnlyMemory<byte> At(long position, int count)
    {
        int start = (int)(position % Period);
        return s_block.AsMemory(start, Math.Min(count, Period));
    }

    /// <summary>Returns the first bytes of the stream, or those from <paramref name="position"/>.</summary>
    public static byte[] Take(int count, long position = 0)
    {
        byte[] bytes = new byte[count];
        for (int done = 0; done < count;)
        {
            ReadOnlyMemory<byte> part = At(position + done, count - done);
            part.CopyTo(bytes.AsMemory(done));
            done += part.Length;
        }

        return bytes;
    }

    /// <summary>Asserts that <paramref name="bytes"/> are those of the stream at <paramref name="position"/>.</summary>
    public static void AssertAt(long position, ReadOnlySpan<byte> bytes)
    {
        for (int done = 0; done < bytes.Length;)
        {
            ReadOnlySpan<byte> expected = At(position + done, bytes.Length - done).Span;
            int same = expected.CommonPrefixLength(bytes[done..]);
            if (same < expected.Length)
            {
                Assert.Fail($"The byte at {position + done + same} is {bytes[done + same]}, not {expected[same]}.");
            }

            done += same;
        }
    }

    /// <summary>
    /// Writes <paramref name="count"/> bytes of the stream, in writes of at most <paramref name="chunk"/>.
    /// </summary>
    public static async Task SendAsync(Stream to, long count, int chunk = 256 * 1024)
    {
        for (long sent = 0; sent < count;)
        {
            ReadOnlyMemory<byte> part = At(sent, (int)Math.Min(chunk, count - sent));
            await to.WriteAsync(part);
            sent += part.Length;
        }
    }

    /// <summary>
    /// Reads and checks <paramref name="count"/> bytes of the stream from <paramref name="position"/>, and returns the
    /// number of reads.
    /// </summary>
    public static async Task<int> ReceiveAsync(Stream from, long count, int buffer = 256 * 1024, long position = 0)
    {
        byte[] bytes = new byte[buffer];
        int reads = 0;
        for (long received = 0; received < count;)
        {
            int read = await from.ReadAsync(bytes.AsMemory(0, (int)Math.Min(buffer, count - received)));
            Assert.True(read > 0, $"The stream ended at {received} of {count} bytes.");
            AssertAt(position + received, bytes.AsSpan(0, read));
            received += read;
            reads++;
        }

        return reads;
    }

    private static byte[] Make()
    {
        // Twice the period, so that any part of one period is contiguous.
        byte[] block = new byte[2 * Period];
        new Random(20250101).NextBytes(block.AsSpan(0, Period));
        block.AsSpan(0, Period).CopyTo(block.AsSpan(Period));
        return block;
    }
}
