using System.Net.Security;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Represents the result of reading: the number of bytes, and how it ended.</summary>
internal sealed record FaultReading(long Received, string Ending, Exception? Failure)
{
    /// <summary>
    /// Reads to the end, to a failure, or until everything has arrived. Checks that the data is the pattern's, from its
    /// start.
    /// </summary>
    /// <param name="from">The stream to read.</param>
    /// <param name="how">The way to read.</param>
    /// <param name="timeout">The timeout of a blocking read.</param>
    /// <param name="all">The number of bytes to expect.</param>
    /// <param name="progress">The callback that receives the number of bytes so far.</param>
    public static async Task<FaultReading> RunAsync(SslStream from, FaultReader how, TimeSpan timeout, long all, Action<long> progress)
    {
        if (how is FaultReader.Sync or FaultReader.SyncByByte)
        {
            from.ReadTimeout = (int)timeout.TotalMilliseconds;
        }

        long received = 0;
        byte[] buffer = new byte[how is FaultReader.AsyncByByte or FaultReader.SyncByByte ? 1 : 64 * 1024];
        return how is FaultReader.Sync or FaultReader.SyncByByte ? await Limits.Blocking(Block) : await RunAsync();

        async Task<FaultReading> RunAsync()
        {
            try
            {
                while (received < all)
                {
                    if (how == FaultReader.EmptyFirst)
                    {
                        Assert.Equal(0, await from.ReadAsync(Memory<byte>.Empty));
                    }

                    if (!Take(await from.ReadAsync(buffer)))
                    {
                        return new FaultReading(received, FaultOutcome.End, null);
                    }
                }

                return new FaultReading(received, FaultOutcome.All, null);
            }
            catch (Exception e) when (e is not Xunit.Sdk.XunitException)
            {
                return new FaultReading(received, FaultOutcome.Name(e), e);
            }
        }

        FaultReading Block()
        {
            try
            {
                while (received < all)
                {
                    if (!Take(from.Read(buffer)))
                    {
                        return new FaultReading(received, FaultOutcome.End, null);
                    }
                }

                return new FaultReading(received, FaultOutcome.All, null);
            }
            catch (Exception e) when (e is not Xunit.Sdk.XunitException)
            {
                return new FaultReading(received, FaultOutcome.Name(e), e);
            }
        }

        bool Take(int read)
        {
            Pattern.AssertAt(received, buffer.AsSpan(0, read));
            received += read;
            progress(received);
            return read > 0;
        }
    }
}
