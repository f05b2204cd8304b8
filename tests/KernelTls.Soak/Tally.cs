using System.Collections.Concurrent;

namespace KernelTls.Soak;

/// <summary>Counts the operations by kind of client, and the bytes of payload verified. Thread-safe.</summary>
internal sealed class Tally
{
    private readonly ConcurrentDictionary<string, long> _operations = new();
    private long _bytes;

    public long Operations => _operations.Values.Sum();

    public long Bytes => Volatile.Read(ref _bytes);

    public void Count(string kind) => _operations.AddOrUpdate(kind, 1, (_, count) => count + 1);

    public void CountBytes(long bytes) => Interlocked.Add(ref _bytes, bytes);

    public override string ToString() => string.Join(' ', _operations.OrderBy(o => o.Key).Select(o => $"{o.Key} {o.Value}"));
}
