using System.Diagnostics;
using System.Net.Security;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>How a program reads: the ways that take different paths in a stream.</summary>
public enum FaultReader
{
    /// <summary>ReadAsync into 64 KiB.</summary>
    Async,

    /// <summary>ReadAsync of a byte at a time.</summary>
    AsyncByByte,

    /// <summary>An empty ReadAsync before each that is not, as HttpClient and Kestrel do.</summary>
    EmptyFirst,

    /// <summary>Read into 64 KiB, with a ReadTimeout.</summary>
    Sync,

    /// <summary>Read of a byte at a time, with a ReadTimeout.</summary>
    SyncByByte,
}

/// <summary>What reads came to: how much they brought, how they ended, and when.</summary>
internal sealed record FaultReading(long Received, Exception? Failure, TimeSpan Time)
{
    /// <summary>A fault ends a read long before this; a ReadTimeout is twice as long.</summary>
    public static readonly TimeSpan Limit = TimeSpan.FromSeconds(5);

    /// <summary>Reads to the end, to the failure, or until there is enough. What it brings is the pattern's, from its start.</summary>
    /// <param name="from">Where to read.</param>
    /// <param name="how">The way to read.</param>
    /// <param name="enough">Where to stop.</param>
    /// <param name="progress">Told how much there is so far.</param>
    public static async Task<FaultReading> ToTheEndAsync(SslStream from, FaultReader how, long enough = long.MaxValue, Action<long>? progress = null)
    {
        Stopwatch watch = new();
        long received = 0;
        byte[] buffer = new byte[how is FaultReader.AsyncByByte or FaultReader.SyncByByte ? 1 : 64 * 1024];
        try
        {
            for (int read; received < enough && (read = await ReadAsync()) > 0;)
            {
                Pattern.AssertAt(received, buffer.AsSpan(0, read));
                received += read;
                progress?.Invoke(received);
            }

            return new FaultReading(received, null, watch.Elapsed);
        }
        catch (Exception e) when (e is not (Xunit.Sdk.XunitException or TimeoutException))
        {
            return new FaultReading(received, e, watch.Elapsed);
        }

        async Task<int> ReadAsync()
        {
            watch.Restart();
            switch (how)
            {
                case FaultReader.Sync or FaultReader.SyncByByte:
                    from.ReadTimeout = (int)(Limit * 2).TotalMilliseconds;
                    return await Limits.Blocking(() => from.Read(buffer));
                case FaultReader.EmptyFirst:
                    Assert.Equal(0, await from.ReadAsync(Memory<byte>.Empty));
                    break;
            }

            return await from.ReadAsync(buffer);
        }
    }
}
