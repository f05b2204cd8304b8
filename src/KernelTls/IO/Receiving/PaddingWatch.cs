using System.Buffers.Text;
using KernelTls.Diagnostics;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.IO;

/// <summary>
/// Decides for <see cref="KtlsExpectNoPadding.Automatic"/> whether connections expect records without padding, by the number of padded
/// records that the kernel has decrypted twice. The kernel counts them for the network namespace, not for a connection. Thread-safe.
/// </summary>
/// <param name="time">The clock.</param>
/// <param name="readCounter">Returns the number, or <see langword="null"/> if it cannot be read.</param>
internal sealed class PaddingWatch(TimeProvider time, Func<long?> readCounter)
{
    /// <summary>The number of a connection's receives from one question to the next.</summary>
    public const int ReceivesBetweenQuestions = 64;

    /// <summary>The largest growth from one look to the next that changes nothing.</summary>
    public const int MostBetweenLooks = 64;

    private const long Unknown = -1;

    private readonly long _interval = time.TimestampFrequency;
    private readonly long _pause = 60 * time.TimestampFrequency;
    private long _nextLook = long.MinValue;
    private long _pausedUntil = long.MaxValue;
    private long _seen = Unknown;

    private static ReadOnlySpan<byte> Counter => "TlsRxNoPadViolation"u8;

    /// <summary>Gets the watch of this process and its network namespace. Tests set it.</summary>
    public static PaddingWatch Shared { get; set; } = new(TimeProvider.System, ReadCounter);

    /// <summary>Gets a value that indicates whether a connection expects no padding now. Looks at the counter once a second at most.</summary>
    public bool ExpectsNone
    {
        get
        {
            long now = time.GetTimestamp();
            long next = Volatile.Read(ref _nextLook);
            if (now >= next && Interlocked.CompareExchange(ref _nextLook, now + _interval, next) == next)
            {
                Look(now);
            }

            return now >= Volatile.Read(ref _pausedUntil);
        }
    }

    private static long? ReadCounter()
    {
        Span<byte> file = stackalloc byte[4096];
        try
        {
            using SafeFileHandle handle = File.OpenHandle("/proc/net/tls_stat");
            file = file[..RandomAccess.Read(handle, file, fileOffset: 0)];
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return null;
        }

        int name = file.IndexOf(Counter);
        if (name < 0)
        {
            return null;
        }

        // A loop, because TrimStart is not compiled ahead of time.
        file = file[(name + Counter.Length)..];
        while (!file.IsEmpty && file[0] is (byte)' ' or (byte)'\t')
        {
            file = file[1..];
        }

        return Utf8Parser.TryParse(file, out long count, out _) ? count : null;
    }

    private void Look(long now)
    {
        long count = readCounter() ?? Unknown;
        long before = Interlocked.Exchange(ref _seen, count);
        if (count == Unknown)
        {
            Volatile.Write(ref _pausedUntil, long.MaxValue);
        }
        else if (before == Unknown)
        {
            Volatile.Write(ref _pausedUntil, now);
        }
        else if (count - before > MostBetweenLooks)
        {
            Volatile.Write(ref _pausedUntil, now + _pause);
            KtlsEventSource.Log.PaddedRecords(count - before);
        }
    }
}
